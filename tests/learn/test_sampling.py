"""Batches are balanced over scenes, patches change as a detector and a camera change them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="needs hiernorm[train]")

from hiernorm.cli.app import app
from hiernorm.learn import PatchSet, PhotoTour, TrainingSettings
from hiernorm.learn.augmentation import change_light, disturb_frames
from hiernorm.learn.development import DevelopmentScene, load_development
from hiernorm.learn.measures import compute_roc, pair_distances
from hiernorm.learn.network import make_network
from hiernorm.learn.pairs import make_pairs
from patch_scenes import draw_patches, random_patches, write_scene


def set_of_places(*points: int) -> tuple[PatchSet, np.ndarray]:
    """Patches of several scenes with so many points each, and the scene of each point."""
    owners = np.repeat(np.arange(len(points)), points)
    patches, labels = draw_patches(len(owners), 3)
    return PatchSet(patches, labels, owners[labels]), owners


def test_a_batch_has_as_many_points_of_each_scene_and_none_twice() -> None:
    patches, owners = set_of_places(40, 10, 90)
    settings = TrainingSettings(data=("x",), sampling="points", batch=24)
    for step in range(20):
        anchor, positive, _ = patches.draw_rows(settings, 0, step)
        drawn = patches.points[anchor]
        assert len(np.unique(drawn)) == len(drawn) == 24
        np.testing.assert_array_equal(np.bincount(owners[drawn]), [8, 8, 8])
        np.testing.assert_array_equal(patches.points[positive], drawn)
        assert (anchor != positive).all()


def test_a_batch_has_no_more_scenes_than_asked_for_and_all_come_in_turn() -> None:
    patches, owners = set_of_places(40, 10, 90)
    settings = TrainingSettings(data=("x",), sampling="points", batch=20, places_per_batch=2)
    drawn = [owners[patches.points[patches.draw_rows(settings, 0, i)[0]]] for i in range(60)]
    assert all(len(np.unique(places)) == 2 for places in drawn)
    shares = np.bincount(np.concatenate(drawn))
    assert shares[2] > shares[1] > 0  # larger scenes more often, small ones too


def test_an_epoch_by_points_has_as_many_pairs_as_points() -> None:
    patches, _ = set_of_places(40, 20)
    assert patches.steps(10, "points") == 6
    assert patches.steps(10) == 18


def test_frames_and_light_change_each_patch_by_a_little() -> None:
    patches, _ = draw_patches(6, 2)
    for change in (disturb_frames, change_light):
        changed = change(patches, np.random.default_rng(0))
        again = change(patches, np.random.default_rng(0))
        np.testing.assert_array_equal(changed, again)
        assert changed.dtype == np.uint8
        for before, after in zip(patches, changed, strict=True):
            assert 0.3 < np.corrcoef(before.ravel(), after.ravel())[0, 1] < 1


def test_development_scenes_give_the_fpr95_of_their_pairs(tmp_path: Path) -> None:
    import torch

    scene = PhotoTour.open(write_scene(tmp_path / "tiny"))
    network = make_network("tfeat", 16, 1 / 8, "l2").eval()
    rate = DevelopmentScene(scene).measure(network)
    with torch.no_grad():
        rows = network(torch.from_numpy(scene.patches)[:, None].float() / 255).numpy()
    pairs = make_pairs(scene.points)
    assert rate == compute_roc(pair_distances(rows, pairs), pairs.matching).fpr95


def test_development_scenes_keep_whole_points(tmp_path: Path) -> None:
    scene = PhotoTour.open(write_scene(tmp_path / "tiny", points=24, views=4))
    assert len(DevelopmentScene(scene, most=40).patches) == 36
    assert load_development(TrainingSettings(data=("x",))) == []


def test_the_command_judges_epochs_by_a_development_scene(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "tiny")
    command = ["train", "--data", str(scene), "--out", str(tmp_path / "run"), "--norm", "l2"]
    command += ["--architecture", "tfeat", "--loss", "hardest", "--batch", "8", "--epochs", "2"]
    command += ["--sampling", "points", "--development", str(scene), "--threads", "1"]
    command += ["--validation", "0.3"]
    result = CliRunner().invoke(app, [*command, "--augment", "frames,light", "--json"])
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert all('"development": {"tiny": ' in line for line in lines)
    assert len(lines) == 3


def test_noise_is_not_repeated_from_patch_to_patch() -> None:
    patch = random_patches(1).repeat(2, axis=0)
    first, second = disturb_frames(patch, np.random.default_rng(0))
    assert (first != second).any()


def test_a_sample_has_whole_points_of_every_scene() -> None:
    patches, owners = set_of_places(40, 10, 90)
    sample = patches.sample(90)
    assert len(sample.tensors()) == len(sample) == 90
    np.testing.assert_array_equal(np.unique(sample.points, return_counts=True)[1], 3)
    firsts = {patch.numpy().tobytes() for patch in sample.tensors()[::3]}
    drawn = [p for p in range(len(owners)) if patches.tensors()[3 * p].numpy().tobytes() in firsts]
    np.testing.assert_array_equal(np.bincount(owners[drawn]), [10, 10, 10])
    assert patches.sample(10**6) is patches

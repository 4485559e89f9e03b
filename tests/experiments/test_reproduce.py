"""The parts of a reproduction: what stays out of databases, variants, and the store of runs."""

from __future__ import annotations

import doctest
import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="needs hiernorm[test]")
pytest.importorskip("torch", reason="needs hiernorm[test]")
pytest.importorskip("kornia", reason="needs hiernorm[test]")
pytest.importorskip("cv2", reason="needs hiernorm[test]")
pytest.importorskip("skimage", reason="needs hiernorm[test]")

import torch

import experiments
import hiernorm
from experiments.harness.patches import photo_source, scene_source, turned_source
from experiments.harness.records import Store
from experiments.reproduce.databases import Databases, split_scene
from experiments.reproduce.layout import count_evaluated
from experiments.reproduce.networks import Variants
from experiments.reproduce.options import SMOKE, Options
from experiments.reproduce.report import run_parts
from hiernorm.learn.network import HNHardNet
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.rotate import embed_all, rotate_network
from hiernorm.learn.run import TrainingRun
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.writer import SceneWriter
from hiernorm.reference import algorithm_1
from hiernorm.vision import cut_patches, detect, read_grey

SIZE = replace(SMOKE, entries=400, section_entries=200, queries=20, more_queries=30)
PHOTOS = 3
POINTS = 60


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """Scenes whose images are their photos: each point is cut a little apart in every photo."""
    root = tmp_path_factory.mktemp("data")
    for number, scene in enumerate(("train", "first", "second")):
        folder = root / "photos" / scene
        folder.mkdir(parents=True)
        image = read_grey(embedded_photos()[number])
        frames = detect(image, limit=POINTS)
        views = []
        for photo in range(PHOTOS):
            (folder / f"{photo}.png").write_bytes(embedded_photos()[number].read_bytes())
            views.append(cut_patches(image, frames, window=24.0 + photo))
        with SceneWriter(root / f"{scene}.zip", pairs=80) as writer:
            for point in range(POINTS):
                rows = np.full(PHOTOS, point)
                patches = np.stack([view[point] for view in views])
                writer.add(point, patches, np.arange(PHOTOS), frames[rows])
    return Options(root, "train", ("first", "second"), root / "out", "turned", SIZE)


def test_no_patch_of_a_querys_own_image_is_an_entry(options: Options) -> None:
    scene = PhotoTour(options.data, "first")
    split = split_scene(scene, most=10)
    assert scene.interest is not None
    images = scene.interest[:, 0].astype(int)
    assert set(images[split.queries]) == split.images == {PHOTOS - 1}
    assert not np.isin(images[split.entries], list(split.images)).any()
    np.testing.assert_array_equal(scene.points[split.matches], scene.points[split.queries])
    assert np.isin(split.matches, split.entries).all()


def test_scene_that_does_not_tell_images_holds_out_patches_alone(options: Options) -> None:
    scene = PhotoTour(options.data, "first")
    scene.__dict__["interest"] = None
    split = split_scene(scene, most=10)
    assert split.images == frozenset()
    assert len(split.queries) == 10
    assert not np.isin(split.queries, split.entries).any()
    np.testing.assert_array_equal(scene.points[split.matches], scene.points[split.queries])


def test_databases_leave_out_photos_of_queries_and_hold_their_matches(options: Options) -> None:
    databases, plain = Databases(options), Variants(options).plain
    data = databases.build("first", plain, SIZE.entries)
    assert data.entries.shape == (SIZE.entries, 128)
    assert sum(data.kinds.values()) == SIZE.entries
    assert len(data.keypoints) == SIZE.queries
    held = {f"{PHOTOS - 1}.png"}
    for scene in options.tests:
        assert held.isdisjoint(photo.name for photo in databases._usable_photos(scene))
    small = databases.build("first", plain, 50)
    split = databases.split("first")
    matches = plain.describe(databases.scene_features("first", plain.backbone)[split.matches])
    stored = {row.tobytes() for row in small.entries}
    assert all(row.tobytes() in stored for row in matches.descriptors[: SIZE.queries])


def test_database_that_photos_cannot_fill_takes_turned_patches(
    options: Options, tmp_path: Path
) -> None:
    for scene in ("train", "first", "second"):
        (tmp_path / f"{scene}.zip").write_bytes((options.data / f"{scene}.zip").read_bytes())
    bare = replace(options, data=tmp_path)
    patches = POINTS * (PHOTOS + 2 * (PHOTOS - 1))
    databases, plain = Databases(bare), Variants(options).plain
    data = databases.build("first", plain, patches + 50)
    assert data.kinds == {"scene": patches, "turned": 50}
    assert len(np.unique(data.entries, axis=0)) == len(data.entries)
    with pytest.raises(ValueError, match=r"turned ones included; a database needs 1,000,000"):
        databases.build("first", plain, 10**6)


def test_turned_sources_are_the_symmetries_of_the_square(options: Options) -> None:
    scene = scene_source(PhotoTour(options.data, "first"))
    variants = [scene.cut(), *(turned_source(scene, number).cut() for number in range(1, 8))]
    assert len({patches.tobytes() for patches in variants}) == 8


def test_turned_variant_is_the_turned_network(options: Options) -> None:
    variants = Variants(options)
    scene = PhotoTour(options.data, "train")
    patches = torch.from_numpy(scene.patches)[:, None]
    network = HNHardNet(8, 1 / 8)
    network.load_state_dict(hiernorm_weights(variants))
    rotate_network(network, patches, scene.points, "lda")
    variant = variants.make((8, 1 / 8))
    found = variant.describe(variants.plain.backbone.features(scene_source(scene))).descriptors
    expected = hiernorm.normalize(embed_all(network, patches), 8, 1 / 8)
    # Signs of eigenvectors are anyone's choice, and products do not see them.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=2e-3)


def hiernorm_weights(variants: Variants) -> dict[str, torch.Tensor]:
    from hiernorm.learn.checkpoint import load_weights

    return load_weights(variants.plain.backbone.weights)


def test_papers_recipe_trains_and_does_not_train_twice(options: Options) -> None:
    paper = replace(options, recipe="paper", out=options.out.parent / "paper")
    variant = Variants(paper).make((16, 1 / 8))
    log = paper.out / "variants" / "K16-a1_8" / "log.jsonl"
    assert [json.loads(line)["epoch"] for line in log.read_text().splitlines()] == [0, 1]
    before = log.stat().st_mtime_ns
    again = Variants(paper).make((16, 1 / 8))
    assert log.stat().st_mtime_ns == before
    assert again.backbone.weights == variant.backbone.weights


def test_tuned_recipe_trains_on_scenes_of_another_folder(options: Options, tmp_path: Path) -> None:
    train_data = tmp_path / "tracks"
    train_data.mkdir()
    for number in range(3):
        shutil.copyfile(options.data / "train.zip", train_data / f"place{number}-tracks.zip")
    tuned = replace(
        options,
        train="place0-tracks",
        more_train=("place1-tracks", "place2-tracks"),
        train_data=train_data,
        recipe="tuned",
        out=tmp_path / "out",
    )
    assert tuned.folder_of("first") == options.data
    assert len(Databases(tuned).scene("place0-tracks")) == PHOTOS * POINTS
    variants = Variants(tuned)
    variants.make((16, 1 / 8))
    trained = TrainingRun.load(tuned.out / "variants" / "K16-a1_8").settings
    assert [Path(path).parent for path in trained.data] == [train_data] * 3
    assert trained.places_per_batch == 2


def test_training_of_other_settings_is_not_taken_for_this_one(options: Options) -> None:
    paper = replace(options, recipe="paper", out=options.out.parent / "paper")
    Variants(paper).make((16, 1 / 8))
    with pytest.raises(ValueError, match="a training of other settings"):
        Variants(replace(paper, seed=1)).make((16, 1 / 8))


def test_parts_that_do_not_exist_are_named(options: Options) -> None:
    with pytest.raises(ValueError, match="no part 'tables': there are data, quality"):
        run_parts(options, None, only=("tables",))


def test_features_are_computed_once(options: Options) -> None:
    backbone = Variants(options).plain.backbone
    photo = next((options.data / "photos" / "train").iterdir())
    source = photo_source(photo, "train", limit=5)
    first = backbone.features(source)

    def refuse() -> np.ndarray:
        raise AssertionError("cut again")

    np.testing.assert_array_equal(backbone.features(replace(source, cut=refuse)), first)


def test_store_ignores_runs_of_other_settings_and_cut_off_files(tmp_path: Path) -> None:
    store = Store(tmp_path, "reproduce", {"seed": 0})
    assert store.make("part/run", lambda: {"value": (1, 2)}) == {"value": [1, 2]}
    assert store.find("part/run") == {"value": [1, 2]}
    assert Store(tmp_path, "reproduce", {"seed": 1}).find("part/run") is None
    forced = Store(tmp_path, "reproduce", {"seed": 0}, force=True)
    assert forced.find("part/run") is None
    forced.make("part/run", lambda: {"value": 3})
    assert forced.find("part/run") == {"value": 3}
    (tmp_path / "part" / "run.json").write_text('{"settings"')
    assert store.find("part/run") is None


def test_run_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> dict[str, int]:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        Store(tmp_path, "reproduce", {}).make("part/run", fail)
    assert list(tmp_path.rglob("*.json")) == []


def test_counted_evaluations_are_those_of_algorithm_1() -> None:
    rows = np.random.default_rng(3).standard_normal((400, 32))
    x = hiernorm.normalize(rows, major=8, alpha=1 / 4)
    for query in x[:10] + 0.3 * x[10:20]:
        # One entry, the best major, is evaluated before the loop.
        _, evaluated = algorithm_1(query, x, major=8, alpha=1 / 4)
        counted = count_evaluated(x, query, (8, 1 / 4))
        assert abs(counted["index"] - evaluated) <= 1
        assert counted["sorted"] <= counted["index"]


def test_options_refuse_what_cannot_be_reproduced(options: Options) -> None:
    with pytest.raises(ValueError, match="recipe must be one of paper, turned, tuned, got 'guess'"):
        replace(options, recipe="guess")
    with pytest.raises(ValueError, match="two others to test on, got first and first, second"):
        replace(options, train="first")


def test_examples_in_docstrings_are_true() -> None:
    folders = ("harness", "reproduce", "reproduce.claims")
    modules = [
        f"experiments.{folder}.{file.stem}"
        for folder in folders
        for file in Path(experiments.__path__[0], *folder.split(".")).glob("*.py")
    ]
    results = [doctest.testmod(importlib.import_module(module)) for module in sorted(modules)]
    assert sum(result.attempted for result in results) > 20
    assert sum(result.failed for result in results) == 0

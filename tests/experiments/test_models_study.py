"""The study of the models runs at its smallest, and its records have what the tables read."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="needs hiernorm[train]")

from colmap_support import photo_views
from experiments.harness.records import read_record
from experiments.models.__main__ import main
from experiments.models.development import main as measure_development
from experiments.models.heads import main as train_heads
from experiments.models.held_out import main as measure_held_out
from experiments.models.measured import many_pairs, open_tracks
from experiments.models.ratio import compare_models
from experiments.models.scenes import main as count_scenes
from experiments.models.search_time import main as compare_times
from experiments.models.tracks import main as make_tracks
from hiernorm.learn import PhotoTour, load_network, load_weights
from hiernorm.learn.checkpoint import save_weights
from hiernorm.learn.network import make_network
from patch_scenes import write_scene


def test_models_are_evaluated_timed_and_profiled(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    save_weights(tmp_path / "slim.safetensors", make_network("tfeat", 16, 1 / 8, "l2"))
    command = ["--scene", scene, "--model", "hn8", "--against", "sift", "--smoke"]
    command += ["--against", f"slim={tmp_path / 'slim.safetensors'}"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "out" / "models.json").result
    assert [row["model"] for row in found["quality"]] == ["sift-48", "slim", "hn8"]
    timed = [("hn8", 1), ("hn8", 2), ("slim", 1), ("slim", 2)]
    assert [(row["model"], row["threads"]) for row in found["speed"]] == timed
    shares = found["layers"]["hn8"]
    assert sum(name.startswith("convolution") for name in shares) == 7
    assert sum(shares.values()) == pytest.approx(1)


def test_scenes_are_counted(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny", points=24, views=4))
    result = CliRunner().invoke(count_scenes, [scene, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    (row,) = read_record(tmp_path / "out" / "scenes.json").result["scenes"]
    assert (row["points"], row["patches"], row["views"], row["most_views"]) == (24, 96, 4.0, 4)


def test_tracks_are_made_of_each_place_once(tmp_path: Path) -> None:
    for place in ("castle", "orchard", "unknown"):
        (tmp_path / "photos" / place).mkdir(parents=True)
        for number, view in enumerate(photo_views(3)):
            cv2.imwrite(str(tmp_path / "photos" / place / f"{number}.png"), view)
    command = ["--photos", str(tmp_path / "photos"), "--keypoints", "200"]
    command += ["--out", str(tmp_path / "scenes")]
    result = CliRunner().invoke(make_tracks, command)
    assert result.exit_code == 0, result.output
    made = {file.name: file.read_bytes() for file in (tmp_path / "scenes").iterdir()}
    assert sorted(made) == ["castle-tracks.zip", "orchard-tracks.zip"]
    assert len(PhotoTour.open(str(tmp_path / "scenes" / "castle-tracks.zip"))) > 20
    (tmp_path / "scenes" / "orchard-tracks.zip").unlink()
    result = CliRunner().invoke(make_tracks, command)
    assert "orchard: " in result.stderr
    assert "castle: " not in result.stderr
    for name, content in made.items():
        assert (tmp_path / "scenes" / name).read_bytes() == content
    result = CliRunner().invoke(make_tracks, ["--photos", str(tmp_path), "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "has no folder of castle" in result.output


def test_search_times_of_two_networks_are_compared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "features.npy", np.float32(rng.standard_normal((300, 128))))
        np.save(tmp_path / name / "queries.npy", np.float32(rng.standard_normal((40, 128))))
    command = ["--new", str(tmp_path / "new"), "--old", str(tmp_path / "old"), "--smoke"]
    result = CliRunner().invoke(compare_times, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "out" / "search_time.json").result
    assert [(row["n"], row["k"]) for row in found["rows"]] == [(300, 1), (300, 10)] * 2
    assert all(row["ratio"] == row["new"] / row["old"] > 0 for row in found["rows"])
    assert found["mean"] > 0


def test_development_scenes_measure_quality_and_share(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    command = ["--scene", scene, "--describer", "hn8", "--describer", "sift", "--rounds", "5"]
    result = CliRunner().invoke(measure_development, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    ours, sift = read_record(tmp_path / "out" / "development.json").result["quality"]
    assert 0 < ours["phase2"]["with_match"] <= 1
    assert sift["phase2"] is None


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A folder with tracks of two places and of lund and conch."""
    folder = tmp_path / "scenes"
    for place in ("castle", "brighton", "lund", "conch"):
        scene = write_scene(tmp_path / f"{place}-tracks", points=60)
        shutil.make_archive(str(folder / scene.name), "zip", tmp_path, scene.name)
    return folder


def test_heads_are_trained_without_a_place_and_averaged(tmp_path: Path, places: Path) -> None:
    command = ["--scenes", str(places), "--start", "hardnet", "--rotate", "--teacher", "hardnet"]
    command += ["--left-out", "lund", "--recipe", "major", "--recipe", "no_major", "--smoke"]
    command += ["--threads", "1"]
    command += ["--mean", "both=major+no_major", "--rounds", "5", "--weights", str(tmp_path / "w")]
    result = CliRunner().invoke(train_heads, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "out" / "heads.json").result["quality"]
    assert [row["model"] for row in found] == ["start", "major", "no_major", "both"]
    assert {row["scene"] for row in found} == {"lund-tracks"}
    made = [
        load_weights(tmp_path / "w" / "without-lund" / f"{name}.safetensors")["features.19.weight"]
        for name in ("start", "major", "no_major", "both")
    ]
    assert not (made[0] == made[1]).all()
    np.testing.assert_array_equal(made[3].numpy(), ((made[1] + made[2]) / 2).numpy())


@pytest.mark.parametrize(("start", "recipe"), [("hn8", "rate"), ("hardnet", "rate_plain")])
def test_heads_keep_the_norm_of_their_start(
    tmp_path: Path, places: Path, start: str, recipe: str
) -> None:
    command = ["--scenes", str(places), "--start", start, "--teacher", "hardnet", "--noise"]
    command += ["--left-out", "conch", "--recipe", recipe, "--smoke", "--threads", "1"]
    command += ["--rounds", "5", "--weights", str(tmp_path / "w"), "--against", start]
    result = CliRunner().invoke(train_heads, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    made = load_network(tmp_path / "w" / "without-conch" / f"{recipe}.safetensors")
    begun = load_network(start)
    assert (made.norm, made.major, made.alpha) == (begun.norm, begun.major, begun.alpha)
    before, after = begun.state_dict(), made.state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {"features.15.weight", "features.19.weight"}


def test_noise_changes_the_patches_that_are_measured(places: Path) -> None:
    clean, noisy = (open_tracks(places, ["lund"], noise)[0] for noise in (False, True))
    assert clean.patches.shape == noisy.patches.shape
    assert (clean.patches != noisy.patches).any(axis=(1, 2)).all()


def test_candidates_are_measured_on_points_held_out(tmp_path: Path, places: Path) -> None:
    command = ["--scenes", str(places), "--describer", "hn8", "--rounds", "5", "--threads", "1"]
    result = CliRunner().invoke(measure_held_out, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "out" / "held_out.json").result
    assert len(found["quality"]) == 4
    assert [row["scene"] for row in found["shares"]] == ["lund-tracks", "conch-tracks"]


def test_many_pairs_have_as_many_wrong_ones_as_asked_for() -> None:
    points = np.arange(40) // 2
    pairs = many_pairs(points, wrong=500)
    assert int(pairs.matching.sum()) == 20
    assert int((~pairs.matching).sum()) == 500
    np.testing.assert_array_equal(points[pairs.first] == points[pairs.second], pairs.matching)


def test_a_ratio_is_paired_over_points(tmp_path: Path) -> None:
    scene = PhotoTour.open(write_scene(tmp_path / "tiny"))
    rng = np.random.default_rng(0)
    far = rng.random(len(scene.pairs)) + 0.5 * ~scene.pairs.matching
    itself = compare_models(scene, (far, far), rounds=5, seed=0)
    assert (itself["ratio"], itself["low"], itself["high"]) == (1, 1, 1)
    worse = compare_models(scene, (rng.random(len(far)), far), rounds=5, seed=0)
    assert worse["ratio"] > 1

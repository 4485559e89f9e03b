"""The study of the models runs at its smallest, and its records have what the tables read."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="needs hiernorm[train]")

from experiments.harness.records import read_record
from experiments.models.__main__ import main
from experiments.models.development import main as measure_development
from experiments.models.scenes import main as count_scenes
from patch_scenes import write_scene


def test_models_are_evaluated_timed_and_profiled(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    command = ["--scene", scene, "--model", "hn8", "--against", "sift", "--smoke"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "out" / "models.json").result
    assert [row["model"] for row in found["quality"]] == ["sift-48", "hn8"]
    assert [row["threads"] for row in found["speed"]] == [1, 2]
    shares = found["layers"]["hn8"]
    assert sum(name.startswith("convolution") for name in shares) == 7
    assert sum(shares.values()) == pytest.approx(1)


def test_scenes_are_counted(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny", points=24, views=4))
    result = CliRunner().invoke(count_scenes, [scene, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    (row,) = read_record(tmp_path / "out" / "scenes.json").result["scenes"]
    assert (row["points"], row["patches"], row["views"], row["most_views"]) == (24, 96, 4.0, 4)


def test_development_scenes_measure_quality_and_share(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    command = ["--scene", scene, "--describer", "hn8", "--describer", "sift", "--rounds", "5"]
    result = CliRunner().invoke(measure_development, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    ours, sift = read_record(tmp_path / "out" / "development.json").result["quality"]
    assert 0 < ours["phase2"]["with_match"] <= 1
    assert sift["phase2"] is None

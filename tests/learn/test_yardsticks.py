"""Descriptors of others beside ours: in one table, by names that say what they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("cv2", reason="needs hiernorm[vision]")

import cv2

from hiernorm.cli.app import app
from hiernorm.learn import load_describer
from hiernorm.learn.opencv import WINDOWS
from patch_scenes import draw_patches, write_scene

needs_contributed = pytest.mark.skipif(
    not hasattr(getattr(cv2, "xfeatures2d", None), "VGG_create"), reason="needs hiernorm[vision]"
)


@needs_contributed
@pytest.mark.parametrize("name", WINDOWS)
def test_descriptors_of_opencv_tell_points_apart(name: str) -> None:
    patches, points = draw_patches(12, 2)
    rows = load_describer(name)(patches).descriptors
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    products = rows @ rows.T - 2 * np.eye(len(rows))
    assert (points[products.argmax(axis=1)] == points).mean() > 0.8


def test_missing_modules_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cv2, "xfeatures2d", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hiernorm\[vision\]'"):
        load_describer("vgg")(draw_patches(2, 2)[0])


def test_the_command_compares_with_several_at_once(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    command = ["evaluate", "--data", scene, "--rounds", "10", "--json", "--model", "hn8"]
    result = CliRunner().invoke(app, [*command, "--against", "sift", "rootsift"])
    assert result.exit_code == 0, result.output
    named = [row["model"] for row in json.loads(result.stdout)["results"]]
    assert named == ["sift-48", "rootsift-48", "hn8"]


def test_names_without_against_are_refused(tmp_path: Path) -> None:
    scene = str(write_scene(tmp_path / "tiny"))
    result = CliRunner().invoke(app, ["evaluate", "--data", scene, "sift"])
    assert result.exit_code == 2
    assert "name descriptors after --against" in result.output

"""The models that `reconstruct` writes: of one run, the largest first."""

from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")
pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")

from click.testing import CliRunner  # noqa: E402

from hiernorm.cli.app import app  # noqa: E402
from hiernorm.vision import reconstruct_models  # noqa: E402
from hiernorm.vision.drawing import read_colour  # noqa: E402
from hiernorm.vision.room import write_room_photos  # noqa: E402
from hiernorm.vision.sparse_model import SparseModel, draw_model  # noqa: E402

SMALL, LARGE = 4, 5


@pytest.fixture(scope="module")
def two_rooms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rooms")
    for letter, count, seed in (("a", SMALL, 0), ("b", LARGE, 1)):
        for photo in write_room_photos(folder, count, seed):
            photo.rename(folder / f"{letter}{photo.name}")
    return folder


@pytest.fixture
def small_models_first(monkeypatch):
    """COLMAP maps rooms of a few photos, and numbers the smaller model first, as it may."""
    options, mapping = pycolmap.IncrementalPipelineOptions, pycolmap.incremental_mapping

    def of_few_photos():
        made = options()
        made.min_model_size = 3
        return made

    def smallest_first(database, photos, out, **options):
        models = mapping(database, photos, out, **options)
        order = sorted(models, key=lambda number: models[number].num_reg_images())
        for number in order:
            os.rename(os.path.join(out, str(number)), os.path.join(out, f"was{number}"))
        for place, number in enumerate(order):
            os.rename(os.path.join(out, f"was{number}"), os.path.join(out, str(place)))
        return {place: models[number] for place, number in enumerate(order)}

    monkeypatch.setattr(pycolmap, "IncrementalPipelineOptions", of_few_photos)
    monkeypatch.setattr(pycolmap, "incremental_mapping", smallest_first)


def run(photos, out):
    words = ("reconstruct", photos, "-o", out, "--keypoints", 400, "--threads", 1, "--json")
    return CliRunner().invoke(app, [str(word) for word in words])


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_all_that_is_said_and_shown_is_of_the_largest_model(
    two_rooms, tmp_path, small_models_first
):
    done = run(two_rooms, tmp_path)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert sorted(os.listdir(tmp_path / "sparse")) == ["0", "1"]
    assert pycolmap.Reconstruction(str(tmp_path / "sparse" / "1")).num_reg_images() == SMALL
    model = pycolmap.Reconstruction(facts["model"])
    assert facts["model"] == str(tmp_path / "sparse" / "0")
    assert model.num_reg_images() == facts["registered"] == LARGE
    assert model.num_points3D() == facts["points"]
    shape = SparseModel.from_pycolmap(model)
    page = (tmp_path / "model.html").read_text()
    assert json.loads(re.search(r'"names": (\[.*?\])', page)[1]) == list(shape.names)
    np.testing.assert_array_equal(read_colour(tmp_path / "model.png"), draw_model(shape))


def test_models_of_an_earlier_run_are_gone(two_rooms, tmp_path, small_models_first, monkeypatch):
    assert run(two_rooms, tmp_path).exit_code == 0
    options = pycolmap.IncrementalPipelineOptions()
    options.multiple_models = False
    monkeypatch.undo()
    monkeypatch.setattr(pycolmap, "IncrementalPipelineOptions", lambda: options)
    shutil.copytree(tmp_path / "sparse" / "1", tmp_path / "sparse.mapped" / "7")  # killed there
    assert run(two_rooms, tmp_path).exit_code == 0
    assert os.listdir(tmp_path / "sparse") == ["0"]
    assert not list(tmp_path.glob("sparse.*"))


def test_a_run_without_a_model_leaves_the_earlier_one(two_rooms, tmp_path, monkeypatch):
    assert run(two_rooms, tmp_path).exit_code == 0
    before = contents(tmp_path)
    monkeypatch.setattr(pycolmap, "incremental_mapping", lambda *_, **__: {})
    assert run(two_rooms, tmp_path).exit_code == 1
    for file, content in before.items():
        assert file.suffix == ".db" or file.read_bytes() == content


@pytest.mark.parametrize("failing", ["write_picture", "write_model_page"])
def test_no_picture_of_an_earlier_model_stays(two_rooms, tmp_path, monkeypatch, failing):
    """Where the pictures cannot be written, there are none rather than those of other models."""
    assert run(two_rooms, tmp_path).exit_code == 0
    before = {(tmp_path / name).read_bytes() for name in ("model.png", "model.html")}

    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(reconstruct_models, failing, full)
    assert run(two_rooms, tmp_path).exit_code == 1
    assert not (tmp_path / "model.html").exists()
    assert (tmp_path / "model.png").exists() == (failing == "write_model_page")
    monkeypatch.undo()
    assert run(two_rooms, tmp_path).exit_code == 0
    assert {(tmp_path / name).read_bytes() for name in ("model.png", "model.html")} == before


def test_a_full_disk_leaves_the_earlier_models(two_rooms, tmp_path, monkeypatch):
    assert run(two_rooms, tmp_path).exit_code == 0
    before = contents(tmp_path / "sparse")
    mapping, usage = reconstruct_models.map_database, shutil.disk_usage(tmp_path)

    def fill(*words, **options):
        models = mapping(*words, **options)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        return models

    monkeypatch.setattr(reconstruct_models, "map_database", fill)
    done = run(two_rooms, tmp_path)
    assert done.exit_code == 1
    assert "no space left for" in done.output
    assert contents(tmp_path / "sparse") == before
    assert sorted(os.listdir(tmp_path)) == sorted(
        (
            *("database.db", "model.html", "model.png", "photos.json", "reconstruct.lock"),
            *("settings.json", "sparse"),
        )
    )

"""Running `reconstruct` again after photos were removed, replaced or added."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3

import numpy as np
import pytest

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")
pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")

from click.testing import CliRunner  # noqa: E402

from hiernorm.adapters.colmap import ColmapDatabase  # noqa: E402
from hiernorm.cli.app import app  # noqa: E402
from hiernorm.vision import reconstruct  # noqa: E402
from hiernorm.vision.drawing import read_colour, write_picture  # noqa: E402
from hiernorm.vision.reconstruct_inputs import only_writer  # noqa: E402
from hiernorm.vision.room import write_room_photos  # noqa: E402

COUNT = 5


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    write_room_photos(folder / "photos", COUNT)
    facts(folder / "photos", folder / "model")
    return folder


@pytest.fixture
def room(first, tmp_path):
    """Photos and their model, to change."""
    return shutil.copytree(first, tmp_path / "room")


def run(photos, out, *more):
    words = ("reconstruct", photos, "-o", out, "--keypoints", 500, "--threads", 1, "--json", *more)
    return CliRunner().invoke(app, [str(word) for word in words])


def facts(photos, out, *more):
    done = run(photos, out, *more)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def features(out):
    with ColmapDatabase(out / "database.db") as database:
        return {
            image.name: (
                database.keypoints(image.image_id).tobytes(),
                database.descriptors(image.image_id).tobytes(),
            )
            for image in database.images()
        }


def matches(out):
    """Matches by names; the order of two names does not depend on ids."""
    with ColmapDatabase(out / "database.db") as database:
        images = database.images()
        found = {}
        for a in images:
            for b in images:
                if a.image_id < b.image_id:
                    rows = database.matches((a.image_id, b.image_id))
                    names = sorted((0, 1), key=lambda side: (a.name, b.name)[side])
                    key = tuple((a.name, b.name)[side] for side in names)
                    found[key] = np.unique(rows[:, names], axis=0).tolist()
    return found


def counts(out):
    connection = sqlite3.connect(out / "database.db")
    names = ("images", "cameras", "rigs", "frames", "frame_data", "keypoints", "descriptors")
    found = {
        name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names
    }
    connection.close()
    return found


def same_as_anew(room, tmp_path, *more):
    """Run again; the database has what a run in a new folder has."""
    again = facts(room / "photos", room / "model", *more)
    anew = facts(room / "photos", tmp_path / "anew", *more)
    assert features(room / "model") == features(tmp_path / "anew")
    assert matches(room / "model") == matches(tmp_path / "anew")
    assert counts(room / "model") == counts(tmp_path / "anew")
    assert again["photos"] == anew["photos"] == again["registered"]
    return again


def test_a_photo_that_was_removed_leaves_the_model(room, tmp_path):
    (room / "photos" / "04.png").unlink()
    assert same_as_anew(room, tmp_path)["registered"] == COUNT - 1
    model = pycolmap.Reconstruction(str(room / "model" / "sparse" / "0"))
    assert "04.png" not in {image.name for image in model.images.values()}


def test_a_photo_that_was_replaced_is_described_again(room, tmp_path, first):
    (photo,) = write_room_photos(tmp_path / "other", COUNT + 3)[2:3]
    os.utime(photo, (1, 1))  # an older file, as a copy may be
    shutil.copy2(photo, room / "photos" / "02.png")
    same_as_anew(room, tmp_path)
    assert features(room / "model")["02.png"] != features(first / "model")["02.png"]
    assert features(room / "model")["01.png"] == features(first / "model")["01.png"]


def test_a_photo_that_was_replaced_by_one_of_another_size_gets_its_camera(room, tmp_path):
    file = room / "photos" / "02.png"
    write_picture(file, np.ascontiguousarray(read_colour(file)[:400]))
    same_as_anew(room, tmp_path)
    with pycolmap.Database.open(str(room / "model" / "database.db")) as database:
        image = database.read_image_with_name("02.png")
        assert database.read_camera(image.camera_id).height == 400


def test_a_shared_camera_stays_when_a_photo_goes(first, tmp_path):
    room = tmp_path / "room"
    shutil.copytree(first / "photos", room / "photos")
    facts(room / "photos", room / "model", "--single-camera")
    (room / "photos" / "00.png").unlink()
    same_as_anew(room, tmp_path, "--single-camera")
    assert counts(room / "model")["cameras"] == 1


def test_a_photo_that_is_replaced_while_the_command_is_killed_is_described_again(
    room, tmp_path, monkeypatch
):
    shutil.copy(room / "photos" / "00.png", tmp_path / "first.png")
    shutil.copy(room / "photos" / "01.png", tmp_path / "second.png")
    with monkeypatch.context() as patched:
        patched.setattr(reconstruct, "describe_grey", lambda *_: 1 / 0)
        shutil.copy(tmp_path / "first.png", room / "photos" / "02.png")
        assert run(room / "photos", room / "model").exit_code == 1
    shutil.copy(tmp_path / "second.png", room / "photos" / "02.png")
    facts(room / "photos", room / "model")
    stored = features(room / "model")
    assert stored["02.png"] == stored["01.png"] != stored["00.png"]


def test_photos_of_a_folder_without_digests_are_described_again(room, first):
    """As earlier versions left it: nobody knows of which file the features are."""
    (room / "model" / "photos.json").unlink()
    change = sqlite3.connect(room / "model" / "database.db")
    change.execute("UPDATE descriptors SET data = zeroblob(LENGTH(data))")
    change.commit()
    change.close()
    facts(room / "photos", room / "model")
    assert features(room / "model") == features(first / "model")


def test_damaged_digests_are_named(room):
    (room / "model" / "photos.json").write_text("[1")
    done = run(room / "photos", room / "model")
    assert done.exit_code == 1
    assert "photos.json is damaged: remove it" in done.output


@pytest.mark.parametrize("out", ["photos", "photos/model", "photos/a/b"])
def test_pictures_of_results_are_no_photos(first, tmp_path, out):
    room = tmp_path / "room"
    shutil.copytree(first / "photos", room / "photos")
    facts(room / "photos", room / out)
    shutil.copy(room / out / "model.png", room / out / "sparse" / "points.png")
    assert facts(room / "photos", room / out)["photos"] == COUNT
    if out != "photos":  # nor for another result
        assert facts(room / "photos", tmp_path / "second")["photos"] == COUNT


def test_photos_in_the_folder_of_the_result_are_not_left_out_in_silence(first, tmp_path):
    shutil.copytree(first / "photos", tmp_path / "photos" / "day")
    done = run(tmp_path / "photos", tmp_path / "photos" / "day")
    assert done.exit_code == 1
    assert "day has photos: choose a folder without" in done.output
    assert sorted(os.listdir(tmp_path / "photos" / "day"))[0] == "00.png"


@pytest.mark.parametrize("name", ["model.png", "sparse/0/points3D.bin"])
def test_files_that_this_command_has_not_made_are_not_replaced(first, tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    done = run(first / "photos", tmp_path)
    assert done.exit_code == 1
    assert "this command has not made it: choose another folder" in done.output
    assert file.read_text() == "mine"
    file.unlink()  # an empty folder stands in nobody's way
    assert run(first / "photos", tmp_path).exit_code == 0


def test_two_processes_do_not_write_to_one_folder(room):
    with only_writer(room / "model"):
        done = run(room / "photos", room / "model")
    assert done.exit_code == 4
    assert "model is locked: another process is writing its reconstruction" in done.output


def test_identical_photos_are_named(tmp_path):
    write_room_photos(tmp_path / "photos", 1)
    shutil.copy(tmp_path / "photos" / "00.png", tmp_path / "photos" / "copy.png")
    done = run(tmp_path / "photos", tmp_path / "model")
    assert done.exit_code == 1
    assert "needs two different photos or more, all 2 in" in done.output
    (other,) = write_room_photos(tmp_path / "other", 1, seed=7)
    shutil.copy(other, tmp_path / "photos" / "other.png")
    done = run(tmp_path / "photos", tmp_path / "model")
    assert done.exit_code == 1
    assert "share too little, and some are identical (00.png = copy.png)" in done.output

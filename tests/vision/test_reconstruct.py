"""Photos in, a sparse model out: on photos of a generated room."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3

import numpy as np
import pytest

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")
pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")

from click.testing import CliRunner  # noqa: E402

from hiernorm.adapters.colmap.importing import import_photos  # noqa: E402
from hiernorm.adapters.colmap.soundness import require_colmap_file  # noqa: E402
from hiernorm.cli.app import app  # noqa: E402
from hiernorm.vision.drawing import read_colour, write_picture  # noqa: E402
from hiernorm.vision.room import write_room_photos  # noqa: E402
from hiernorm.vision.sparse_model import (  # noqa: E402
    SparseModel,
    draw_model,
    write_model_page,
)

COUNT = 4


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("room")
    write_room_photos(folder, COUNT)
    return folder


@pytest.fixture(scope="module")
def made(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("model")
    done = run("reconstruct", photos, "-o", out, "--keypoints", 500, "--threads", 1, "--json")
    assert done.exit_code == 0, done.output
    return out, json.loads(done.output)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_photos_become_a_model_of_colmap(made):
    out, facts = made
    assert facts["photos"] == facts["registered"] == COUNT
    model = pycolmap.Reconstruction(str(out / "sparse" / "0"))
    assert model.num_reg_images() == COUNT
    assert model.num_points3D() == facts["points"] > 100
    assert facts["error in pixels"] < 1


def test_the_points_lie_on_the_walls_of_the_room(made):
    """Three planes that meet at right angles, up to the scale that photos cannot tell."""
    shape = SparseModel.from_pycolmap(pycolmap.Reconstruction(str(made[0] / "sparse" / "0")))
    left, normals = shape.points, []
    rng = np.random.default_rng(0)
    size = np.ptp(left, axis=0).max()
    for _ in range(3):
        best = np.zeros(len(left), bool)
        for _ in range(300):
            a, b, c = left[rng.choice(len(left), 3, replace=False)]
            normal = np.cross(b - a, c - a)
            if np.linalg.norm(normal) < 1e-9:
                continue
            normal /= np.linalg.norm(normal)
            near = np.abs((left - a) @ normal) < 0.01 * size
            if near.sum() > best.sum():
                best, chosen = near, normal
        normals.append(chosen)
        left = left[~best]
    assert len(left) < 0.1 * len(shape.points)
    cosines = np.abs(np.stack(normals) @ np.stack(normals).T)
    assert np.abs(cosines - np.eye(3)).max() < 0.1


def contents(path):
    """All that the database has of photos and pairs."""
    tables = ("images", "keypoints", "descriptors", "matches", "two_view_geometries")
    connection = sqlite3.connect(path)
    rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    connection.close()
    return rows


def test_photos_with_spaces_in_their_names_are_reconstructed(photos, tmp_path):
    (tmp_path / "my photos").mkdir()
    for photo in photos.iterdir():
        shutil.copy(photo, tmp_path / "my photos" / f"my photo {photo.name}")
    out = tmp_path / "model"
    words = ("--keypoints", 500, "--threads", 1, "--json")
    done = run("reconstruct", tmp_path / "my photos", "-o", out, *words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["registered"] == COUNT


def test_running_again_keeps_what_is_there_and_maps_it_the_same_on_one_thread(photos, made):
    before = contents(made[0] / "database.db")
    done = run("reconstruct", photos, "-o", made[0], "--keypoints", 500, "--threads", 1, "--json")
    assert done.exit_code == 0, done.output
    assert contents(made[0] / "database.db") == before
    results = ("registered", "points", "track length", "error in pixels")
    again = json.loads(done.output)
    assert [again[name] for name in results] == [made[1][name] for name in results]
    with pycolmap.Database.open(str(made[0] / "database.db")) as database:
        assert database.num_images() == COUNT
        assert database.num_matched_image_pairs() == 6


def test_other_settings_need_another_folder(photos, made):
    done = run("reconstruct", photos, "-o", made[0], "--keypoints", 600)
    assert done.exit_code == 1
    assert "features with limit 500, asked for is limit 600: choose another folder" in done.output


def test_a_full_disk_is_named_before_colmap_writes(photos, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    done = run("reconstruct", photos, "-o", tmp_path / "model")
    assert done.exit_code == 1
    assert "1,000 are free" in done.output
    assert not (tmp_path / "model" / "database.db").exists()


DAMAGE = {
    "text": (lambda path: path.write_text("no database" * 100), 5, "is not a database of COLMAP"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:20_000]), 3, "is damaged"),
    "schema": (
        lambda path: change(path, "ALTER TABLE matches RENAME COLUMN data TO blob"),
        5,
        "has the schema of another version of COLMAP",
    ),
}


def change(path, statement):
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_database_that_colmap_cannot_open_says_why(photos, made, tmp_path, damage):
    act, exit_code, text = DAMAGE[damage]
    out = shutil.copytree(made[0], tmp_path / "model")
    act(out / "database.db")
    done = run("reconstruct", photos, "-o", out, "--keypoints", 500)
    assert done.exit_code == exit_code, done.output
    assert text in done.output


def test_a_database_of_another_program_is_not_changed(photos, tmp_path):
    """COLMAP would add its tables to it."""
    path = tmp_path / "database.db"
    change(path, "CREATE TABLE songs (name TEXT)")
    before = path.read_bytes()
    done = run("reconstruct", photos, "-o", tmp_path)
    assert done.exit_code == 5, done.output
    assert "is an SQLite file, but not of COLMAP" in done.output
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["database.db"]


def test_a_database_of_colmap_that_someone_else_made_is_not_changed(photos, made, tmp_path):
    path = shutil.copy(made[0] / "database.db", tmp_path / "database.db")
    before = path.read_bytes()
    done = run("reconstruct", photos, "-o", tmp_path)
    assert done.exit_code == 1, done.output
    assert "this command has not made it: choose another folder" in done.output
    assert path.read_bytes() == before


def test_tables_that_colmap_did_not_finish_are_completed(photos, tmp_path):
    for out, statement in (
        ("empty", "PRAGMA user_version = 0"),
        (
            "begun",
            "CREATE TABLE rigs (rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "
            "ref_sensor_id INTEGER NOT NULL, ref_sensor_type INTEGER NOT NULL)",
        ),
    ):
        (tmp_path / out).mkdir()
        change(tmp_path / out / "database.db", statement)
        require_colmap_file(tmp_path / out / "database.db")
        import_photos(photos, ["00.png", "01.png"], tmp_path / out / "database.db")
        with pycolmap.Database.open(str(tmp_path / out / "database.db")) as database:
            assert database.num_images() == database.num_cameras() == 2


def test_photos_of_a_single_camera_share_its_focal_length(photos, tmp_path):
    words = ("reconstruct", photos, "-o", tmp_path / "one", "--keypoints", 500, "--threads", 1)
    done = run(*words, "--single-camera", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["registered"] == COUNT
    model = pycolmap.Reconstruction(str(tmp_path / "one" / "sparse" / "0"))
    assert model.num_cameras() == 1
    done = run(*words)
    assert done.exit_code == 1
    assert "has one camera, asked for is a camera for each photo" in done.output


def test_photos_that_come_later_get_the_same_camera(photos, tmp_path):
    path = tmp_path / "database.db"
    for count in (1, 2, COUNT):
        names = [f"{number:02}.png" for number in range(count)]
        import_photos(photos, names, path, single_camera=True)
    with pycolmap.Database.open(str(path)) as database:
        assert (database.num_images(), database.num_cameras()) == (COUNT, 1)
    with pytest.raises(ValueError, match="has one camera, asked for is a camera for each photo"):
        import_photos(photos, names, path)


def test_a_single_camera_has_photos_of_one_size(photos, tmp_path):
    copy = shutil.copytree(photos, tmp_path / "photos")
    write_picture(copy / "small.png", read_colour(copy / "00.png")[:100])
    names = ["00.png", "01.png", "small.png"]
    with pytest.raises(ValueError, match=r"small.png .* not the size of 00.png, 640 x 480"):
        import_photos(copy, names, tmp_path / "database.db", single_camera=True)


def test_photos_that_cannot_be_used_are_named(photos, tmp_path):
    copy = shutil.copytree(photos, tmp_path / "photos")
    odd = copy / os.fsdecode(b"caf\xe9.png")
    shutil.copy(copy / "00.png", odd)
    done = run("reconstruct", copy, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "caf\\udce9.png has a name that is not UTF-8: rename it" in done.output
    odd.unlink()
    for file in sorted(copy.iterdir())[1:]:
        file.unlink()
    done = run("reconstruct", copy, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "a reconstruction needs two photos or more" in done.output
    (copy / "bad.png").write_text("no picture")
    done = run("reconstruct", copy, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "bad.png is no picture that COLMAP can read" in done.output


def test_damaged_settings_are_named(photos, tmp_path):
    (tmp_path / "settings.json").write_text("{")
    done = run("reconstruct", photos, "-o", tmp_path)
    assert done.exit_code == 1
    assert "settings.json is damaged" in done.output


def test_the_picture_has_points_and_cameras(made):
    picture = read_colour(made[0] / "model.png")
    blue, green, red = picture.astype(int).transpose(2, 0, 1)
    assert ((red > 200) & (blue == green) & (blue < 160)).sum() > 50 * COUNT
    assert (picture < 250).any(axis=2).sum() > 1000


def test_the_page_is_one_file_without_a_network(made):
    page = (made[0] / "model.html").read_text()
    assert not re.search(r"https?://|src=|href=", page)
    assert '"names": ["00.png"' in page


def test_names_cannot_end_the_script_of_the_page(tmp_path):
    shape = SparseModel(
        np.zeros((1, 3)),
        np.zeros((1, 3), np.uint8),
        np.zeros((1, 3)),
        np.eye(3)[np.newaxis],
        ("</script><b>",),
    )
    write_model_page(tmp_path / "page.html", shape, "<title>")
    assert "</script><b>" not in (tmp_path / "page.html").read_text()


def test_a_model_without_points_is_drawn_blank():
    empty = SparseModel(
        np.zeros((0, 3)), np.zeros((0, 3), np.uint8), np.zeros((0, 3)), np.zeros((0, 3, 3)), ()
    )
    assert (draw_model(empty) == 255).all()


def test_photos_that_share_nothing_say_so(tmp_path):
    for seed in range(3):
        (photo,) = write_room_photos(tmp_path / f"{seed}", 1, seed)
        (tmp_path / "photos").mkdir(exist_ok=True)
        photo.rename(tmp_path / "photos" / f"{seed}.png")
    done = run("reconstruct", tmp_path / "photos", "-o", tmp_path / "out", "--keypoints", 100)
    assert done.exit_code == 1
    assert "share too little" in done.output


def test_rooms_are_the_same_on_every_run(tmp_path, photos):
    write_room_photos(tmp_path, COUNT)
    for file in photos.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()

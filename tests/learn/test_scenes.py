"""Scenes made from photos: the UBC format, the same bytes on every run, complete or not there."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[data]")
pytest.importorskip("click", reason="needs hiernorm[cli]")

import cv2
from click.testing import CliRunner

from hiernorm.cli.app import app
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import SceneSettings, make_scene
from hiernorm.learn.scenes.views import Variation, draw_view, jitter, transport
from hiernorm.learn.scenes.writer import SceneWriter
from hiernorm.vision import Frames, cut_patches, read_grey
from paths import ROOT

TINY = SceneSettings(points=30, views=4, pairs=200)
COMMAND = [sys.executable, "-c", "from hiernorm.cli import main; main()"]
PHOTOS = embedded_photos()[4:6]


def read_scene(folder: Path):
    """Patches, points, frames and pairs, read without the package."""
    mosaics = [cv2.imread(str(f), cv2.IMREAD_UNCHANGED) for f in sorted(folder.glob("*.bmp"))]
    assert all(mosaic.shape == (1024, 1024) for mosaic in mosaics)
    patches = np.concatenate(
        [mosaic.reshape(16, 64, 16, 64).swapaxes(1, 2).reshape(-1, 64, 64) for mosaic in mosaics]
    )
    info = np.loadtxt(folder / "info.txt", np.int64)
    (matches,) = folder.glob("m50_*_0.txt")
    return patches, info, np.loadtxt(folder / "interest.txt"), np.loadtxt(matches, np.int64)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    out = tmp_path_factory.mktemp("scenes") / "tiny"
    return make_scene(PHOTOS, out, TINY), out


def test_the_files_are_those_of_the_format(scene):
    made, out = scene
    patches, info, interest, matches = read_scene(out)
    assert made.patches == len(info) == len(interest)
    assert made.points == len(np.unique(info[:, 0]))
    assert len(patches) == -(-made.patches // 256) * 256
    assert not patches[made.patches :].any()
    assert (np.diff(info[:, 0]) >= 0).all()
    np.testing.assert_array_equal(info[:, 1], interest[:, 0])
    assert {path.name for path in out.iterdir()} == {
        *(f"patches{i:04d}.bmp" for i in range(len(patches) // 256)),
        "info.txt",
        "interest.txt",
        f"m50_{len(matches) // 2}_{len(matches) // 2}_0.txt",
    }


def test_matches_are_balanced_and_true_to_the_points(scene):
    _, info, _, matches = read_scene(scene[1])
    first, second = matches[:, 0], matches[:, 3]
    np.testing.assert_array_equal(info[first, 0], matches[:, 1])
    np.testing.assert_array_equal(info[second, 0], matches[:, 4])
    matching = matches[:, 1] == matches[:, 4]
    assert matching.sum() * 2 == len(matches)
    assert (first != second).all()
    assert 0 < np.flatnonzero(matching)[0] + np.flatnonzero(~matching)[0] < len(matches) / 2


def test_every_point_has_several_views_from_different_images(scene):
    _, info, _, _ = read_scene(scene[1])
    assert np.bincount(info[:, 0]).min() >= 2
    assert len(np.unique(info, axis=0)) == len(info)


def test_sift_tells_the_views_of_a_point_from_others(scene):
    patches, info, _, matches = read_scene(scene[1])
    keypoint = [cv2.KeyPoint(31.5, 31.5, 48 / 6, 0)]
    sift = cv2.SIFT_create()
    rows = np.concatenate([sift.compute(patch, keypoint)[1] for patch in patches[: len(info)]])
    distance = np.linalg.norm(rows[matches[:, 0]] - rows[matches[:, 3]], axis=1)
    matching = matches[:, 1] == matches[:, 4]
    is_right = distance[matching][:, None] < distance[~matching]
    assert is_right.mean() > 0.95
    # Views differ: a scene of copies would be of no use.
    assert np.median(distance[matching]) > 0.2 * np.median(distance[~matching])


def test_the_same_seed_gives_the_same_bytes_for_any_number_of_threads(tmp_path):
    before = cv2.getNumThreads()
    digests = set()
    try:
        for threads in (1, 2, 5):
            cv2.setNumThreads(threads)
            out = tmp_path / f"{threads}.zip"
            make_scene(PHOTOS, out, TINY)
            digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
    finally:
        cv2.setNumThreads(before)
    assert len(digests) == 1


def test_a_run_of_its_own_gives_the_same_bytes(tmp_path, scene):
    command = f"data make --points 30 --views 4 --pairs 200 --out {tmp_path / 'again'}"
    photos = tmp_path / "photos"
    photos.mkdir()
    for photo in PHOTOS:
        (photos / photo.name).write_bytes(photo.read_bytes())
    subprocess.run(
        [*COMMAND, *command.split(), "--photos", str(photos)],
        check=True,
        capture_output=True,
    )
    for file in scene[1].iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_another_seed_gives_another_scene(tmp_path, scene):
    make_scene(PHOTOS, tmp_path / "other", SceneSettings(points=30, views=4, pairs=200, seed=1))
    ours, other = read_scene(scene[1]), read_scene(tmp_path / "other")
    assert not np.array_equal(ours[0][:256], other[0][:256])


def test_a_zip_holds_the_files_of_the_folder(tmp_path, scene):
    make_scene(PHOTOS, tmp_path / "scene.zip", TINY)
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {path.name for path in scene[1].iterdir()}
        for file in scene[1].iterdir():
            assert archive.read(file.name) == file.read_bytes()


@pytest.mark.parametrize("name", ["scene", "scene.zip"])
def test_the_reader_gives_back_what_was_written(tmp_path, scene, name):
    make_scene(PHOTOS, tmp_path / name, TINY)
    read = PhotoTour(tmp_path, "scene")
    patches, info, interest, matches = read_scene(scene[1])
    np.testing.assert_array_equal(read.patches, patches[: len(info)])
    np.testing.assert_array_equal(read.points, info[:, 0])
    np.testing.assert_array_equal(read.interest, interest)
    np.testing.assert_array_equal(read.pairs.first, matches[:, 0])
    np.testing.assert_array_equal(read.pairs.second, matches[:, 3])


@pytest.mark.parametrize("name", ["scene", "scene.zip"])
def test_an_existing_scene_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(FileExistsError, match="exists already: remove it first"):
        make_scene(PHOTOS, tmp_path / name, TINY)
    assert (tmp_path / name).read_text() == "precious"


@pytest.mark.parametrize("name", ["scene", "scene.zip"])
def test_a_broken_photo_is_named_and_nothing_is_left(tmp_path, name):
    broken = tmp_path / "broken.png"
    broken.write_bytes(PHOTOS[0].read_bytes()[:100])
    with pytest.raises(ValueError, match=r"broken\.png is not a picture"):
        make_scene([PHOTOS[0], broken], tmp_path / name, TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["broken.png"]


def test_a_killed_run_leaves_no_scene_under_its_name(tmp_path):
    out = tmp_path / "scene"
    process = subprocess.Popen([*COMMAND, "data", "make", "--out", str(out)])
    try:
        until = time.monotonic() + 60
        while not any(tmp_path.glob(".scene.*/scene/patches0000.bmp")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert not out.exists()


@pytest.mark.parametrize("name", ["scene", "scene.zip"])
def test_a_full_disk_is_one_line_and_nothing_is_left(tmp_path, name):
    pytest.importorskip("resource", reason="limits the size of files as Unix does")
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from hiernorm.cli import main; main()"
    )
    arguments = ["data", "make", "--points", "20", "--out", str(tmp_path / name)]
    command = [sys.executable, "-c", limited, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_photos_without_points_are_an_error_and_nothing_is_left(tmp_path):
    cv2.imwrite(str(tmp_path / "flat.png"), np.full((200, 200), 9, np.uint8))
    cv2.imwrite(str(tmp_path / "small.png"), np.full((8, 8), 9, np.uint8))
    photos = [tmp_path / "flat.png", tmp_path / "small.png"]
    with pytest.raises(ValueError, match="needs 2 points or more, found 0 in 2 photos"):
        make_scene(photos, tmp_path / "scene", TINY)
    assert not (tmp_path / "scene").exists()


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"points": 0}, "points must be at least 1, got 0"),
        ({"views": 1}, "views must be at least 2, got 1"),
        ({"pairs": 0}, "pairs must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_impossible_recipes_are_refused(setting, reason):
    with pytest.raises(ValueError, match=reason):
        SceneSettings(**setting)


def write(out: Path, *points: tuple) -> None:
    with SceneWriter(out, pairs=1) as writer:
        for point in points:
            writer.add(*point)


def test_the_writer_refuses_what_does_not_fit(tmp_path):
    one = Frames([1], [1], [1], [0])
    patch, image = np.zeros((1, 64, 64), np.uint8), np.array([0])
    out = tmp_path / "scene"
    with pytest.raises(ValueError, match="increasing order, got 3 after 3"):
        write(out, (3, patch, image, one), (3, patch, image, one))
    with pytest.raises(ValueError, match=r"expected patches of shape \(n, 64, 64\)"):
        write(out, (0, patch[:, :32, :32], image, one))
    with pytest.raises(ValueError, match="as many images and frames as patches, got 2 and 1"):
        write(out, (0, patch, np.array([0, 1]), one))
    assert list(tmp_path.iterdir()) == []


def test_frames_follow_a_view_to_what_they_showed():
    photo = read_grey(PHOTOS[0])
    rng = np.random.default_rng(0)
    calm = Variation(tilt=1.0, perspective=0.02, gamma=1.0, gain=1.0, bias=0, noise=0, shading=0)
    view = draw_view(photo, calm, rng)
    frames = Frames([200.0, 300.0], [150.0, 220.0], [3.0, 4.0], [0.3, -2.0])
    before = cut_patches(photo, frames).reshape(2, -1)
    after = cut_patches(view.image, transport(frames, view.homography)).reshape(2, -1)
    for a, b in zip(before, after, strict=True):
        assert np.corrcoef(a, b)[0, 1] > 0.97


def test_the_noise_of_frames_stays_within_its_limits():
    frames = Frames(*np.full((4, 5000), 2.0))
    variation = Variation()
    noisy = jitter(frames, variation, np.random.default_rng(0))
    distance = np.hypot(noisy.x - 2, noisy.y - 2) / 2
    assert 0.9 * variation.shift < distance.max() <= variation.shift
    factor = np.abs(np.log(noisy.sigma / 2))
    assert 0.9 * np.log(variation.size) < factor.max() <= np.log(variation.size)
    turn = np.abs(noisy.angle - 2)
    assert 0.9 * variation.turn < turn.max() <= variation.turn * (1 + 1e-12)


def test_the_command_makes_the_embedded_scene(tmp_path):
    out = tmp_path / "embedded.zip"
    arguments = ["data", "make", "--out", str(out), "--points", "3", "--views", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "13 photos" in result.output
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_the_command_tells_what_it_made_as_json(tmp_path):
    photos, out = tmp_path / "photos", tmp_path / "made.zip"
    photos.mkdir()
    for photo in embedded_photos()[:2]:
        shutil.copy(photo, photos)
    arguments = ["data", "make", "--photos", str(photos), "--out", str(out), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--points", "3", "--views", "2"])
    assert result.exit_code == 0, result.output
    scene = PhotoTour.open(out)
    assert json.loads(result.stdout) == {
        "path": str(out),
        "patches": len(scene),
        "points": len(set(scene.points.tolist())),
        "photos": 2,
    }
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert again.stdout == ""
    assert "exists already" in again.stderr


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    page = ROOT / "docs" / "guides" / "patches.md"
    example = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(example, str(page), "exec"), names)
    assert len(names["scene"]) == len(names["scene"].patches) > 100

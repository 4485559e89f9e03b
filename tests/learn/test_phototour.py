"""Scenes are read as others wrote them, and each bad file has its error."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hiernorm.learn import PhotoTour, make_pairs
from hiernorm.learn.bitmap import decode_bitmap, encode_bitmap
from patch_scenes import draw_patches, shared_scene, write_scene


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A scene's folder; 300 patches, so two mosaics."""
    return write_scene(tmp_path / "tiny", points=75)


def zipped(folder: Path, inside: str = "") -> Path:
    """The scene's zip, its folder gone."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, inside + file.name)
    shutil.rmtree(folder)
    return path


@pytest.mark.parametrize("kind", ["folder", "zip", "zip with a folder"])
def test_reads_a_scene(scene: Path, kind: str) -> None:
    if kind != "folder":
        zipped(scene, "tiny/" if "folder" in kind else "")
    tour = PhotoTour(scene.parent, "tiny")
    patches, points = draw_patches(75, 4)
    np.testing.assert_array_equal(tour.patches, patches)
    np.testing.assert_array_equal(tour.points, points)
    assert tour.interest is not None
    assert tour.interest.shape == (300, 5)
    assert len(tour.pairs) == 150
    np.testing.assert_array_equal(
        tour.pairs.matching, points[tour.pairs.first] == points[tour.pairs.second]
    )
    assert repr(tour) == "PhotoTour('tiny', 300 patches, 75 points)"
    assert len(PhotoTour.open(scene if kind == "folder" else scene.with_suffix(".zip"))) == 300


def test_the_name_of_a_zip_is_that_zip_though_a_folder_lies_beside_it(scene: Path) -> None:
    archive = zipped(scene)
    write_scene(scene, points=10)
    assert len(PhotoTour.open(archive)) == len(PhotoTour(scene.parent, "tiny.zip")) == 300
    assert len(PhotoTour.open(scene)) == len(PhotoTour(scene.parent, "tiny")) == 40
    assert PhotoTour.open(archive).scene == PhotoTour.open(scene).scene == "tiny"
    archive.unlink()
    with pytest.raises(FileNotFoundError, match=r"no scene 'tiny\.zip': there is no .*tiny\.zip"):
        PhotoTour.open(archive)


def test_takes_the_largest_match_file(scene: Path) -> None:
    (scene / "m50_9_9_0.txt").write_text("0 0 0 1 0 0 0\n")
    (scene / "m50_200_200_0.txt").write_text("0 0 0 1 0 0 0\n0 0 0 4 1 0 0\n")
    assert len(PhotoTour.open(scene).pairs) == 2


def test_makes_the_same_balanced_pairs_where_there_is_no_match_file(tmp_path: Path) -> None:
    tour = PhotoTour.open(write_scene(tmp_path / "bare", pairs=False))
    pairs, again = tour.pairs, make_pairs(tour.points)
    np.testing.assert_array_equal(pairs.first, again.first)
    np.testing.assert_array_equal(pairs.second, again.second)
    assert int(pairs.matching.sum()) * 2 == len(pairs) == 2 * 24 * 6
    np.testing.assert_array_equal(
        pairs.matching, tour.points[pairs.first] == tour.points[pairs.second]
    )
    assert (pairs.first != pairs.second).all()


def test_pairs_are_limited_and_need_points() -> None:
    points = np.repeat(np.arange(50), 5)
    assert len(make_pairs(points, most=100)) == 200
    with pytest.raises(ValueError, match="two points and a point with two patches; got 3 points"):
        make_pairs(np.arange(3))


@pytest.mark.parametrize(
    ("scene_name", "patches", "points", "matches"), [("fox", 9000, 1620, 24574)]
)
def test_reads_what_another_program_wrote(
    scene_name: str, patches: int, points: int, matches: int
) -> None:
    tour = PhotoTour.open(shared_scene(scene_name))
    assert tour.patches.shape == (patches, 64, 64)
    assert len(tour.point_ids) == points
    assert int(tour.pairs.matching.sum()) * 2 == len(tour.pairs) == 2 * matches
    # Patches of the same point look alike: nothing is shifted or transposed.
    flat = tour.patches.reshape(len(tour), -1).astype(np.float32)
    flat -= flat.mean(axis=1, keepdims=True)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True) + 1e-6
    alike = np.einsum("ij,ij->i", flat[tour.pairs.first], flat[tour.pairs.second])
    assert np.median(alike[tour.pairs.matching]) > 0.7
    assert np.median(alike[~tour.pairs.matching]) < 0.2


def test_missing_scenes_and_files_are_named(scene: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no scene 'paris': neither .*paris/ nor paris\.zip"
    ):
        PhotoTour(scene.parent, "paris")
    (scene / "info.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"tiny has no info\.txt; it is no scene"):
        len(PhotoTour.open(scene))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("info.txt", "", "lists no patches"),
        ("info.txt", "0 0\n1\n", r"row 2: 1 columns, the first row has 2"),
        ("info.txt", "0 0\none 0\n", "is not a text file of numbers"),
        ("info.txt", "0 0\n" * 600, r"lists 600 patches, which need 3 mosaics; there are 2"),
        ("interest.txt", "0 1 2\n", "has 1 rows, info.txt has 300"),
        ("m50_75_75_0.txt", "0 0 0\n", "must have rows of: patch point 0 patch point 0 0"),
        ("m50_75_75_0.txt", "0 0 0 300 0 0 0\n", "row 1: patch 300, the scene has 300 patches"),
        ("m50_75_75_0.txt", "0 0 0 4 0 0 0\n", "patch 4 is said to show point 0, info.txt says 1"),
    ],
)
def test_bad_text_files_have_their_errors(
    scene: Path, file: str, content: str, message: str
) -> None:
    (scene / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_all(scene)


def test_bad_mosaics_have_their_errors(scene: Path) -> None:
    mosaic = scene / "patches0001.bmp"
    whole = mosaic.read_bytes()
    for content, message in (
        (whole[:-1], r"patches0001\.bmp is cut short: 1024x1024 pixels need 1,049,654 bytes"),
        (b"GIF89a", "is not a BMP picture"),
        (encode_bitmap(np.zeros((512, 512), np.uint8)), "must have 1024x1024 pixels, got 512x512"),
        (whole[:28] + b"\x04\x00" + whole[30:], "of 8 or 24 bits per pixel, got 4 bits"),
        (b"", "is not a BMP picture"),
    ):
        mosaic.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_all(scene)


def test_bad_archives_have_their_errors(scene: Path) -> None:
    path = zipped(scene)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"tiny\.zip is no complete zip archive"):
        read_all(path)
    middle = len(whole) // 3
    path.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    with pytest.raises(ValueError, match=r"tiny\.zip:patches000\d\.bmp is corrupt"):
        read_all(path)


def test_bitmaps_of_24_bits_and_top_down_are_read() -> None:
    import cv2

    grey = np.random.default_rng(0).integers(0, 256, (5, 7), dtype=np.uint8)
    content = cv2.imencode(".bmp", np.dstack([grey] * 3))[1].tobytes()
    np.testing.assert_array_equal(decode_bitmap(content, "a.bmp"), grey)
    ours = bytearray(encode_bitmap(grey))
    np.testing.assert_array_equal(
        cv2.imdecode(np.frombuffer(ours, np.uint8), cv2.IMREAD_GRAYSCALE), grey
    )
    ours[22:26] = (-5).to_bytes(4, "little", signed=True)
    np.testing.assert_array_equal(decode_bitmap(bytes(ours), "a.bmp"), grey[::-1])


def read_all(path: Path) -> None:
    """Read every part of a scene."""
    tour = PhotoTour.open(path)
    _ = tour.patches, tour.interest, tour.pairs

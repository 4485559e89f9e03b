"""Keypoints and patches: the same on every run, antialiased, in the frame of the UBC data."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")

import cv2

from hiernorm.extras import import_extra
from hiernorm.vision import Frames, cut_patches, detect, list_photos, read_grey
from hiernorm.vision.drawing import read_colour
from hiernorm.vision.patches import SIZE, WINDOW, patch_corners
from hiernorm.vision.picture_size import picture_size
from paths import REAL_SCENES

ONE_TO_ONE = SIZE / WINDOW
"""The sigma at which a patch has the resolution of its image."""


@pytest.fixture
def opencv_threads():
    """Set the number of OpenCV's threads for one test."""
    before = cv2.getNumThreads()
    yield cv2.setNumThreads
    cv2.setNumThreads(before)


@pytest.fixture(scope="module")
def photo():
    """Blobs and edges of many sizes."""
    rng = np.random.default_rng(5)
    picture = sum(
        cv2.GaussianBlur(rng.standard_normal((240, 320)), (0, 0), sigma) * sigma
        for sigma in (1.5, 3, 6, 12)
    )
    return np.clip(128 + 60 * picture, 0, 255).astype(np.uint8)


def one_frame(x, y, sigma=ONE_TO_ONE, angle=0.0):
    return Frames([x], [y], [sigma], [angle])


def test_keypoints_do_not_depend_on_threads(photo, opencv_threads):
    found = []
    for threads in (1, 2, 5):
        opencv_threads(threads)
        found.append(detect(photo))
    assert len(found[0]) > 100
    for other in found[1:]:
        for name in ("x", "y", "sigma", "angle"):
            np.testing.assert_array_equal(getattr(other, name), getattr(found[0], name))


def test_a_limit_keeps_the_strongest(photo):
    everything, few = detect(photo), detect(photo, limit=7)
    np.testing.assert_array_equal(few.x, everything.x[:7])


def test_a_keypoint_has_the_place_and_scale_of_its_blob():
    y, x = np.mgrid[:120, :160]
    blob = np.exp(-((x - 90) ** 2 + (y - 50) ** 2) / (2 * 6.0**2))
    found = detect((255 * blob).astype(np.uint8), limit=1)
    assert abs(found.x[0] - 90) < 0.5
    assert abs(found.y[0] - 50) < 0.5
    assert abs(found.sigma[0] / 6 - 1) < 0.15


def test_a_flat_image_has_no_keypoints():
    found = detect(np.full((80, 80), 7, np.uint8))
    assert len(found) == 0
    assert cut_patches(np.full((80, 80), 7, np.uint8), found).shape == (0, SIZE, SIZE)


def test_an_upright_patch_of_full_resolution_is_the_image_itself(photo):
    # Patches of even size are centred between pixels.
    patch = cut_patches(photo, one_frame(150.5, 100.5))[0]
    smooth = cv2.resize(
        cv2.resize(photo, None, fx=2, fy=2, interpolation=cv2.INTER_LINEAR),
        None,
        fx=0.5,
        fy=0.5,
        interpolation=cv2.INTER_AREA,
    )
    difference = patch.astype(int) - smooth[69:133, 119:183]
    assert np.abs(difference).max() <= 2


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_quarter_turn_of_the_frame_turns_the_patch_back(photo, quarter):
    straight = cut_patches(photo, one_frame(150.5, 100.5))[0]
    turned = cut_patches(photo, one_frame(150.5, 100.5, angle=quarter * np.pi / 2))[0]
    difference = np.rot90(straight, quarter).astype(int) - turned
    assert np.abs(difference).max() <= 2


def test_the_patch_of_a_turned_and_shrunk_photo_looks_the_same(photo):
    frame = one_frame(160, 120, sigma=4.0, angle=0.2)
    matrix = cv2.getRotationMatrix2D((160, 120), 40, 0.8)
    changed = cv2.warpAffine(photo, matrix, (320, 240), flags=cv2.INTER_AREA)
    # OpenCV turns anticlockwise, frames clockwise.
    moved = one_frame(160, 120, sigma=4.0 * 0.8, angle=0.2 - np.deg2rad(40))
    before, after = cut_patches(photo, frame)[0], cut_patches(changed, moved)[0]
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.98


@pytest.mark.parametrize("sigma", [6.0, 11.0, 25.0])
def test_fine_detail_averages_out_instead_of_aliasing(sigma):
    stripes = np.tile(np.array([0, 255], np.uint8), (700, 350))
    patch = cut_patches(stripes, one_frame(350, 350, sigma=sigma, angle=0.1))[0]
    naive_contrast = 127
    assert patch.astype(float).std() < 0.05 * naive_contrast
    assert abs(patch.mean() - 127.5) < 2


def test_beyond_the_edge_the_outermost_pixels_continue():
    image = np.full((40, 40), 90, np.uint8)
    assert (cut_patches(image, one_frame(0, 0)) == 90).all()


def test_corners_span_the_window():
    corners = patch_corners(one_frame(100, 50, sigma=2.0))[0]
    np.testing.assert_allclose(corners, [[76, 26], [124, 26], [124, 74], [76, 74]])


def test_patches_do_not_depend_on_threads(photo, opencv_threads):
    frames = detect(photo, limit=50)
    opencv_threads(1)
    one = cut_patches(photo, frames)
    opencv_threads(4)
    np.testing.assert_array_equal(cut_patches(photo, frames), one)


@pytest.mark.skipif(not (REAL_SCENES / "castle.zip").exists(), reason="needs the real scenes")
def test_patches_equal_those_of_a_scene_that_another_program_cut():
    with zipfile.ZipFile(REAL_SCENES / "castle.zip") as archive:
        lines = io.BytesIO(archive.read("interest.txt"))
        interest = np.loadtxt(lines, max_rows=256)
        mosaic = np.frombuffer(archive.read("patches0000.bmp"), np.uint8)
    theirs = cv2.imdecode(mosaic, cv2.IMREAD_GRAYSCALE)
    theirs = theirs.reshape(16, 64, 16, 64).swapaxes(1, 2).reshape(-1, 64, 64)
    rows = np.flatnonzero(interest[:, 0] == 5)
    image = read_grey(list_photos(REAL_SCENES / "photos" / "castle")[5])

    def likeness(shift=0.0, size=1.0, turn=0.0):
        x, y, sigma, angle = interest[rows, 1:].T
        # That program counts from the corner of the top left pixel, we from its centre.
        frames = Frames(x - 0.5 + shift, y - 0.5, sigma * size, angle + turn)
        ours = cut_patches(image, frames)
        pairs = zip(ours, theirs[rows], strict=True)
        return np.median([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs])

    right = likeness()
    assert right > 0.99
    wrong = [{"shift": 0.5}, {"shift": -0.5}, {"size": 1.02}, {"size": 0.98}]
    wrong += [{"turn": 0.02}, {"turn": -0.02}]
    for change in wrong:
        assert likeness(**change) < right, change


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (([1.0], [1.0], [0.0], [0.0]), "sigma above 0, got 0.0"),
        (([1.0], [np.nan], [1.0], [0.0]), "finite y, got NaN"),
        (([1.0, 2.0], [1.0], [1.0], [0.0]), "as many of each"),
        ((1.0, [1.0], [1.0], [0.0]), r"x of shape \(n,\), got \(\)"),
    ],
)
def test_impossible_frames_are_refused(fields, reason):
    with pytest.raises(ValueError, match=reason):
        Frames(*fields)


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4)), np.zeros((0, 4), np.uint8)]
)
def test_an_image_that_is_not_grey_is_refused(image):
    with pytest.raises(ValueError, match="expected a grey image"):
        detect(image)
    with pytest.raises(ValueError, match="expected a grey image"):
        cut_patches(image, one_frame(1, 1))


def test_impossible_limits_and_windows_are_refused(photo):
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        detect(photo, limit=0)
    with pytest.raises(ValueError, match="window must be above 0, got nan"):
        cut_patches(photo, one_frame(1, 1), window=float("nan"))


def test_photos_are_listed_by_name_wherever_they_lie(tmp_path):
    for name in ("b.JPG", "a/z.png", "a.png", "notes.txt", ".hidden.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in list_photos(tmp_path)]
    assert found == ["a.png", "a/z.png", "b.JPG"]


def test_a_folder_without_photos_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no photo in .*expected names that end in"):
        list_photos(tmp_path)
    with pytest.raises(FileNotFoundError, match="expected a folder of photos, found none"):
        list_photos(tmp_path / "missing")


def test_a_photo_is_turned_as_its_camera_says(tmp_path):
    pictures = pytest.importorskip("PIL.Image", reason="writes the note of the camera")
    note = pictures.Exif()
    note[0x0112] = 6  # Turn it clockwise.
    pictures.fromarray(np.zeros((40, 60), np.uint8)).save(tmp_path / "turned.jpg", exif=note)
    assert read_grey(tmp_path / "turned.jpg").shape == (60, 40)


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_a_file_that_is_no_picture_is_an_error_that_names_it(tmp_path, content):
    file = tmp_path / "broken.png"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.png is not a picture"):
        read_grey(file)


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r"no_such_package: pip install 'hiernorm\[vision\]'"):
        import_extra("no_such_package", "vision")


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tiff", "webp"])
def test_a_photo_of_too_many_pixels_is_refused_before_it_is_decoded(tmp_path, monkeypatch, suffix):
    file = tmp_path / f"large.{suffix}"
    assert cv2.imwrite(str(file), np.zeros((70, 90), np.uint8))
    assert picture_size(file.read_bytes()) == (90, 70)
    monkeypatch.setenv("HIERNORM_PIXEL_LIMIT", "6299")
    for read in (read_grey, read_colour):
        with pytest.raises(ValueError, match=r"has 90 x 70 pixels, at most 6,299 are read: set "):
            read(file)
    monkeypatch.setenv("HIERNORM_PIXEL_LIMIT", "6300")
    assert read_grey(file).shape == (70, 90)


def test_the_size_of_what_is_no_picture_is_not_known():
    for content in (b"", b"BM", b"\xff\xd8\xff", b"II*\0", b"RIFF" + bytes(8) + b"VP8X", b"text"):
        assert picture_size(content) in (None, (1, 1))

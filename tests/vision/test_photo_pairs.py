"""Two photos: described, matched, verified, drawn; the same on every run."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[data]")

import cv2
from click.testing import CliRunner

from hiernorm.cli.app import app
from hiernorm.models import load_model
from hiernorm.vision import FeatureSettings, describe_photo, detect, estimate_geometry, match_photos
from hiernorm.vision.drawing import draw_matches, write_picture
from hiernorm.vision.evidence import (
    FALSE_ALARMS,
    chance_of_agreement,
    least_inliers,
    log_false_alarms,
    weigh_evidence,
)
from hiernorm.vision.geometry import TwoViewGeometry, epipolar_distances
from photo_sets import TURN, write_photos, write_view

RECIPE = FeatureSettings(limit=400)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    return write_photos(folder)[1], write_view(folder / "view.jpg", "chelsea")


@pytest.fixture(scope="module")
def described(pair):
    model = load_model("hn16")
    return [describe_photo(file, RECIPE, model) for file in pair]


def test_inliers_lie_where_the_homography_says(described):
    found = match_photos(*described)
    assert found.geometry.kind == "homography"
    assert found.geometry.count >= 60
    pairs = found.matches.pairs[found.geometry.inliers]
    a, b = (d.frames.centres[pairs[:, i]] for i, d in enumerate(described))
    expected = cv2.perspectiveTransform(a[:, None], TURN)[:, 0]
    assert np.median(np.linalg.norm(expected - b, axis=1)) < 1.5
    assert found.geometry.inliers.shape == (len(found.matches),)


def test_the_answer_is_the_same_on_every_run(described):
    first, second = (match_photos(*described, geometry="fundamental") for _ in range(2))
    np.testing.assert_array_equal(first.matches.pairs, second.matches.pairs)
    np.testing.assert_array_equal(first.geometry.inliers, second.geometry.inliers)
    np.testing.assert_array_equal(first.geometry.matrix, second.geometry.matrix)


def test_reduced_photos_have_places_of_the_full_one(pair, described):
    small = describe_photo(pair[0], FeatureSettings(limit=400, longest_side=200))
    assert (small.width, small.height) == (320, 300)
    assert small.frames.x.max() > 250
    found = match_photos(small, described[0], geometry="homography")
    assert found.geometry.count >= 20
    np.testing.assert_allclose(
        found.geometry.matrix / found.geometry.matrix[2, 2], np.eye(3), rtol=0, atol=1.5
    )


@pytest.mark.parametrize("detector", ["sift", "orb", "gftt"])
def test_every_detector_finds_places_to_match(detector, pair):
    settings = FeatureSettings(limit=400, detector=detector)
    photo = describe_photo(pair[0], settings)
    brighter = cv2.imread(str(pair[0]), cv2.IMREAD_GRAYSCALE)
    frames = detect(brighter, limit=400, detector=detector)
    np.testing.assert_array_equal(frames.x, photo.frames.x)
    assert len(frames) >= 100
    assert match_photos(photo, photo).geometry.count >= 90


def test_too_few_matches_agree_on_nothing():
    places = np.random.default_rng(0).uniform(0, 100, (3, 2))
    for geometry in ("auto", "homography", "fundamental"):
        found = estimate_geometry(places, places, geometry=geometry)
        assert found.matrix is None
        assert found.count == 0
    line = np.column_stack((np.arange(20.0), np.arange(20.0)))
    assert estimate_geometry(line, line[::-1] * 7, geometry="fundamental").inliers.shape == (20,)


def test_epipolar_distances_are_those_of_a_known_camera():
    rng = np.random.default_rng(0)
    points = np.column_stack((rng.uniform(-1, 1, (30, 2)), rng.uniform(3, 6, 30)))
    camera = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    turn, move = cv2.Rodrigues(np.array([0.05, 0.1, 0.02]))[0], np.array([0.4, 0.1, 0.05])
    views = [points @ camera.T, (points @ turn.T + move) @ camera.T]
    a, b = (view[:, :2] / view[:, 2:] for view in views)
    cross = np.cross(np.eye(3), move)
    back = np.linalg.inv(camera)
    matrix = back.T @ (-cross @ turn) @ back
    assert epipolar_distances(matrix, a, b).max() < 1e-6
    assert epipolar_distances(matrix, a, b + np.array([0, 9])).min() > 3


def test_bad_questions_have_their_errors(tmp_path):
    places = np.zeros((9, 2))
    with pytest.raises(ValueError, match="geometry must be one of auto, homography, fundamental"):
        estimate_geometry(places, places, geometry="affine")
    with pytest.raises(ValueError, match="threshold must be above 0, got 0"):
        estimate_geometry(places, places, threshold=0)
    with pytest.raises(ValueError, match=r"expected two arrays of places \(n, 2\), got \(9, 2\)"):
        estimate_geometry(places, places[:3])
    with pytest.raises(ValueError, match="detector must be one of sift, orb, gftt, got 'x'"):
        FeatureSettings(detector="x")
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        FeatureSettings(limit=0)
    with pytest.raises(ValueError, match=r"pictures are written as \.png or \.jpg"):
        write_picture(tmp_path / "x.docx", np.zeros((4, 4, 3), np.uint8))
    assert list(tmp_path.iterdir()) == []


def test_lines_join_the_places_of_inliers():
    dark = np.zeros((100, 100, 3), np.uint8)
    places = np.array([[50.0, 10.0]]), np.array([[50.0, 90.0]])
    with_line, without = (
        draw_matches((dark, dark), places, np.array([inlier]), "") for inlier in (True, False)
    )
    assert with_line.shape == without.shape
    assert (with_line[100:600, 360:1080].max(axis=2) > 128).sum() > 500
    assert (without[100:600, 360:720].max(axis=2) > 128).sum() == 0


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (((1600, 900), (1600, 900)), (1600, 900 + 900)),  # full size
        (((960, 1280), (480, 640)), (960, 1280 + 1280)),  # the lower is enlarged to the higher
        (((3000, 4000), (3000, 4000)), (1440, 1920 + 1920)),  # reduced to what a screen shows
        (((300, 200), (300, 200)), (720, 480 + 480)),
    ],
)
def test_pictures_have_the_full_width_of_the_photos(sizes, expected):
    photos = [np.zeros((*size, 3), np.uint8) for size in sizes]
    nothing = np.empty((0, 2))
    picture = draw_matches(tuple(photos), (nothing, nothing), np.empty(0, bool), "a title")
    scale = expected[0] / 720
    assert picture.shape == (expected[0] + round(40 * scale), expected[1] + round(8 * scale), 3)


def test_a_long_title_fits(tmp_path):
    nothing = np.empty((0, 2))
    photos = tuple(np.zeros((800, 100, 3), np.uint8) for _ in range(2))
    picture = draw_matches(photos, (nothing, nothing), np.empty(0, bool), "a title " * 20)
    assert (picture[:40, -10:] == 255).all()


def test_the_command_prints_inliers_and_draws(pair, tmp_path):
    out = tmp_path / "matches.png"
    arguments = ["match", *map(str, pair), "-o", str(out), "--keypoints", "400"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    lines = dict(line.split(maxsplit=1) for line in result.output.splitlines())
    assert int(lines["inliers"].split()[0]) >= 60
    assert set(lines) == {"keypoints", "matches", "inliers", "verdict", "time", "picture"}
    assert lines["verdict"].startswith("match: ")
    assert "ratio 0.9" in lines["matches"]
    assert cv2.imread(str(out)).shape[0] == 760
    report = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert report["inliers"] == len(report["first"]) == len(report["second"])
    assert report["geometry"] == "homography"
    assert report["convincing"]
    assert report["inliers"] >= report["distinct_inliers"] >= report["needed"] > 4
    assert report["matches"] >= report["distinct_matches"] >= report["distinct_inliers"]


def test_the_command_says_what_is_wrong_with_a_photo(pair, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    result = CliRunner().invoke(app, ["match", str(pair[0]), str(broken)])
    assert result.exit_code == 1
    assert "is not a picture" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_unrelated_photos_do_not_match_and_the_command_says_why(tmp_path):
    one, _, other = write_photos(tmp_path)
    arguments = ["match", str(one), str(other), "--keypoints", "400"]
    for ratio in ("0.9", "0"):
        result = CliRunner().invoke(app, [*arguments, "--ratio", ratio])
        assert result.exit_code == 7
        assert "verdict     no match: " in result.output
        assert ("are needed" in result.output) or ("too few" in result.output)
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 7
    report = json.loads(result.output)
    assert not report["convincing"]
    assert report["reason"]


@pytest.mark.parametrize("kind", ["homography", "fundamental"])
def test_random_matches_are_no_evidence(kind):
    rng = np.random.default_rng(0)
    for n in (10, 30, 100, 400):
        for _ in range(5):
            a, b = rng.uniform(0, 800, (2, n, 2))
            found = estimate_geometry(a, b, geometry=kind)
            assert not weigh_evidence(found, a, b, 2.0, (800, 800), (800, 800)).convincing


def test_matches_between_the_same_places_count_once():
    places = np.random.default_rng(0).uniform(0, 800, (9, 2))
    found = TwoViewGeometry("homography", np.eye(3), np.ones(90, np.bool_))
    often = np.repeat(places, 10, axis=0)
    assert weigh_evidence(found, often, often, 2.0, (800, 800)).inliers == 9


def test_more_matches_need_more_inliers():
    chance = chance_of_agreement("fundamental", 2.0, (1600, 1200))
    needed = [least_inliers("fundamental", n, chance) for n in (8, 20, 100, 500, 2000)]
    assert needed[0] is None
    assert needed[1:] == sorted(needed[1:])
    for n, least in zip((20, 100, 500, 2000), needed[1:], strict=True):
        assert log_false_alarms("fundamental", n, least, chance) <= np.log(FALSE_ALARMS)
        assert log_false_alarms("fundamental", n, least - 1, chance) > np.log(FALSE_ALARMS)

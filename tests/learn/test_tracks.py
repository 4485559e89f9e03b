"""Scenes of real views: points are what several photos agree on, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[vision]")

import cv2

from hiernorm.cli.app import app
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.matched import TrackRecipe, make_matched_scene
from hiernorm.learn.scenes.tracks import keep_apart, link_matches
from hiernorm.learn.scenes.views import Variation, draw_view
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import read_grey

VIEWS = 3
RECIPE = TrackRecipe(keypoints=400, pairs=500)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[np.ndarray]]:
    """Photos of one picture from three sides, with the homographies from it to them."""
    folder = tmp_path_factory.mktemp("place")
    picture = read_grey(embedded_photos()[2])
    random = np.random.default_rng(0)
    files, homographies = [], []
    for number in range(VIEWS):
        view = draw_view(picture, Variation(), random)
        files.append(folder / f"{number}.png")
        cv2.imwrite(str(files[-1]), view.image)
        homographies.append(view.homography)
    return files, homographies


@pytest.fixture(scope="module")
def scene(place: tuple[list[Path], list[np.ndarray]], tmp_path_factory: pytest.TempPathFactory):
    """The scene that is made of them."""
    out = tmp_path_factory.mktemp("scene") / "place.zip"
    made = make_matched_scene(place[0], out, RECIPE)
    return made, PhotoTour.open(out)


def test_patches_of_a_point_show_the_same_place(place, scene) -> None:
    made, tour = scene
    assert made.points >= 50
    assert made.patches == len(tour.points) >= 2 * made.points
    image, x, y, sigma = tour.interest[:, :4].T
    origins = np.empty((len(x), 2))
    for number, homography in enumerate(place[1]):
        rows = image == number
        back = np.linalg.inv(homography) @ np.stack((x[rows], y[rows], np.ones(rows.sum())))
        origins[rows] = (back[:2] / back[2]).T
    # Sigma in the picture is sigma in the view over the view's scale, at most 1.4 * sqrt(1.8) off.
    reach = 2 * 1.9 * sigma
    wrong = 0
    for point in np.unique(tour.points):
        rows = np.flatnonzero(tour.points == point)
        assert len(np.unique(image[rows])) == len(rows)  # once per photo
        apart = np.hypot(*(origins[rows] - origins[rows[0]]).T)
        wrong += bool((apart > reach[rows]).any())
    assert wrong <= 0.03 * made.points


def test_the_same_photos_give_the_same_bytes(place, scene, tmp_path: Path) -> None:
    again = tmp_path / "place.zip"
    make_matched_scene(place[0], again, RECIPE)
    np.testing.assert_array_equal(PhotoTour.open(again).patches, scene[1].patches)
    np.testing.assert_array_equal(PhotoTour.open(again).interest, scene[1].interest)


def test_photos_of_different_places_have_no_point_in_common(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found 0 in 2 photos"):
        make_matched_scene(embedded_photos()[4:6], tmp_path / "none.zip", RECIPE)
    assert list(tmp_path.iterdir()) == []


def test_a_track_that_sees_a_photo_twice_is_left_out() -> None:
    matches = {(0, 1): np.array([[0, 0], [1, 1]]), (0, 2): np.array([[0, 0]])}
    matches[1, 2] = np.array([[0, 1]])  # keypoint 1 of photo 2 joins the track that has 0 already
    tracks = link_matches([3, 3, 3], matches)
    assert [track.tolist() for track in tracks] == [[[0, 1], [1, 1]]]


def test_tracks_do_not_depend_on_the_order_of_matches() -> None:
    random = np.random.default_rng(0)
    matches = {
        (i, j): np.column_stack((random.permutation(30)[:8], random.permutation(30)[:8]))
        for i in range(4)
        for j in range(i + 1, 4)
    }
    tracks = link_matches([30] * 4, matches)
    turned = {key: pairs[::-1] for key, pairs in reversed(matches.items())}
    again = link_matches([30] * 4, turned)
    assert [t.tolist() for t in tracks] == [t.tolist() for t in again] != []


def test_tracks_keep_apart_in_every_photo() -> None:
    near = Frames([10, 13], [10, 10], [1, 1], [0, 0])
    far = Frames([10, 90], [10, 10], [1, 1], [0, 0])
    tracks = [np.array([[0, 0], [1, 0]]), np.array([[0, 1], [1, 1]])]
    assert len(keep_apart(tracks, [far, far], 4.0)) == 2
    assert len(keep_apart(tracks, [far, near], 4.0)) == 1


@pytest.mark.parametrize("bad", [{"keypoints": 0}, {"ratio": 0.0}, {"ratio": 1.5}, {"pairs": 0}])
def test_recipes_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        TrackRecipe(**bad)


def test_the_command_wants_photos_for_tracks(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "make", "--tracks", "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "--tracks needs --photos" in result.output


def test_the_command_makes_a_scene_of_tracks(place, tmp_path: Path) -> None:
    out = tmp_path / "place.zip"
    arguments = ["--photos", str(place[0][0].parent), "--keypoints", "200", "--out", str(out)]
    result = CliRunner().invoke(app, ["data", "make", "--tracks", *arguments])
    assert result.exit_code == 0, result.output
    assert len(PhotoTour.open(out).points) > 40

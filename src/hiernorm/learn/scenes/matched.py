"""Scenes from photos of one place: points are tracks of matched keypoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from hiernorm._deprecation import renamed_names, renamed_parameter
from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.scenes.maker import LEAST_DISTANCE, SceneSummary
from hiernorm.learn.scenes.partners import choose_partners
from hiernorm.learn.scenes.tracks import keep_apart, link_matches
from hiernorm.learn.scenes.views import Variation, jitter
from hiernorm.learn.scenes.writer import SceneWriter
from hiernorm.matching import DescriptorSet, match_descriptors
from hiernorm.models import load_model
from hiernorm.vision.features import (
    FeatureSettings,
    PhotoFeatures,
    describe_photo,
    describe_photo_by_sift,
)
from hiernorm.vision.frames import Frames
from hiernorm.vision.geometry import estimate_geometry
from hiernorm.vision.patches import SIZE, cut_patches, patch_corners
from hiernorm.vision.photos import read_grey

LEAST_INLIERS = 30
"""Two photos with fewer inliers may agree by chance: they are taken not to overlap."""


@dataclass(frozen=True)
class TrackSettings:
    """Settings of a scene of matched photos.

    Attributes
    ----------
    descriptor : str
        Descriptor that keypoints are matched by: ``"sift"`` or a model that ships with the package.
        With ``"sift"`` the points do not depend on the network to train or to evaluate.
    keypoints : int
        Maximum keypoints per photo, the strongest.
    partners : int
        Number of photos to match each photo with: those whose descriptors are nearest. 0 matches
        every two photos.
    longest_side : int
        Larger photos are reduced to this many pixels for the detection of keypoints.
    ratio : float
        Largest ratio of the distances to the nearest and the second nearest keypoint.
    geometry : str
        Geometry that the matches of two photos must agree with: one of
        :data:`hiernorm.vision.geometry.GEOMETRIES`. A homography admits fewer wrong matches than
        epipolar lines do, but only points of one plane.
    threshold : float
        Maximum error of a match in pixels.
    pairs, seed, variation
        As in :class:`hiernorm.learn.scenes.maker.SceneSettings`. Only the noise of the detector
        is taken from the variation.
    """

    descriptor: str = "sift"
    keypoints: int = 8000
    partners: int = 20
    longest_side: int = 2000
    ratio: float = 0.8
    geometry: str = "auto"
    threshold: float = 2.0
    pairs: int = 50_000
    seed: int = 0
    variation: Variation = field(default_factory=Variation)

    def __post_init__(self) -> None:
        lowest = {"keypoints": 1, "partners": 0, "longest_side": 1, "pairs": 1, "seed": 0}
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {self.ratio}")


@renamed_parameter("recipe", "settings")
def make_matched_scene(
    photos: Sequence[Path],
    out: Path,
    settings: TrackSettings | None = None,
    *,
    on_step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> SceneSummary:
    """Make a scene in the UBC format from photos of one place, without rendered views.

    Every photo is described and matched with its partners. Matches of two photos must agree with
    one geometry. They are joined into points that two or more photos see.

    Parameters
    ----------
    photos
        Files of photos that overlap.
    out
        Folder to make, or zip if the name ends in ``.zip``. Appears when it is complete.
    settings
        Numbers of keypoints and pairs, thresholds, the seed.
    on_step
        Called with the name of a step, the number done and the total.
    """
    settings = settings or TrackSettings()
    describe = _make_describer(settings)
    described = []
    for photo in photos:
        described.append(describe(photo))
        on_step("photos described", len(described), len(photos))
    tracks = _find_tracks(described, settings, on_step)
    if len(tracks) < 2:
        raise ValueError(
            f"a scene needs 2 points or more, found {len(tracks)} in {len(photos)} photos; "
            "points are found where photos show the same place"
        )
    frames = [one.frames for one in described]
    with SceneWriter(out, pairs=settings.pairs, seed=settings.seed) as writer:
        points = 0
        for patches, images, seen in _see_tracks(photos, frames, tracks, settings):
            writer.add(points, patches, images, seen)
            points += 1
        return SceneSummary(len(photos), points, len(writer))


def _make_describer(settings: TrackSettings) -> Callable[[Path], PhotoFeatures]:
    """Return a function that describes a photo as the settings say."""
    if settings.descriptor == "sift":
        return lambda photo: describe_photo_by_sift(
            photo, limit=settings.keypoints, longest_side=settings.longest_side
        )
    describing = FeatureSettings(
        model=settings.descriptor, limit=settings.keypoints, longest_side=settings.longest_side
    )
    model = load_model(settings.descriptor)
    return lambda photo: describe_photo(photo, describing, model)


def _find_tracks(
    described: Sequence[PhotoFeatures],
    settings: TrackSettings,
    on_step: Callable[[str, int, int], None],
) -> list[Int64Array]:
    """Match photos with their partners, keep the inliers, link them to tracks."""
    frames = [one.frames for one in described]
    sets = [DescriptorSet(one.descriptors) for one in described]
    couples = choose_partners([one.rows for one in sets], settings.partners)
    matches = {}
    for number, (i, j) in enumerate(couples):
        pairs = match_descriptors(sets[i], sets[j], ratio=settings.ratio).pairs
        agreement = estimate_geometry(
            frames[i].centres[pairs[:, 0]],
            frames[j].centres[pairs[:, 1]],
            geometry=settings.geometry,
            threshold=settings.threshold,
        )
        if agreement.count >= LEAST_INLIERS:
            matches[i, j] = pairs[agreement.inliers]
        on_step("pairs of photos matched", number + 1, len(couples))
    tracks = link_matches([len(one) for one in frames], matches)
    return keep_apart(tracks, frames, LEAST_DISTANCE)


def _see_tracks(
    photos: Sequence[Path],
    frames: Sequence[Frames],
    tracks: Sequence[Int64Array],
    settings: TrackSettings,
) -> Iterator[tuple[UInt8Array, Int64Array, Frames]]:
    """Patches, photo numbers and frames of each track, in the order of the tracks."""
    views = np.concatenate(tracks)
    patches = np.empty((len(views), SIZE, SIZE), np.uint8)
    places = np.empty((4, len(views)))
    inside = np.zeros(len(views), bool)
    for number, photo in enumerate(photos):
        rows = np.flatnonzero(views[:, 0] == number)
        rng = np.random.default_rng([settings.seed, number])
        image = read_grey(photo)
        seen = jitter(frames[number][views[rows, 1]], settings.variation, rng)
        height, width = image.shape
        corners = patch_corners(seen)
        inside[rows] = ((corners >= 0) & (corners <= (width - 1, height - 1))).all(axis=(1, 2))
        patches[rows] = cut_patches(image, seen)
        places[:, rows] = seen.x, seen.y, seen.sigma, seen.angle
    starts = np.cumsum([0, *(len(track) for track in tracks)])
    for first, end in pairwise(starts):
        rows = first + np.flatnonzero(inside[first:end])
        if len(rows) >= 2:
            yield patches[rows], views[rows, 0], Frames(*places[:, rows])


__getattr__ = renamed_names(
    __name__, {"TrackRecipe": "hiernorm.learn.scenes.matched:TrackSettings"}
)

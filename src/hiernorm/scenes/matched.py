"""The maker of scenes from photos of one place: points are what several photos agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from hiernorm.array_types import UInt8Array
from hiernorm.models import Model, load_model
from hiernorm.reference import Int64Array
from hiernorm.scenes.maker import LEAST_DISTANCE, Made
from hiernorm.scenes.tracks import keep_apart, link_matches
from hiernorm.scenes.views import Variation, jitter
from hiernorm.scenes.writer import SceneWriter
from hiernorm.vision.features import FeatureSettings as Describing
from hiernorm.vision.features import PhotoFeatures, describe_photo
from hiernorm.vision.frames import Frames
from hiernorm.vision.patches import SIZE, cut_patches, patch_corners
from hiernorm.vision.photo_match import match_photos
from hiernorm.vision.photos import read_grey

LEAST_INLIERS = 30
"""Photos that agree on fewer matches may agree by chance: they are taken not to overlap."""


@dataclass(frozen=True)
class TrackRecipe:
    """What a scene of real views is made with.

    Attributes
    ----------
    keypoints : int
        Keypoints per photo at most, the strongest.
    longest_side : int
        Larger photos are searched for keypoints at this many pixels.
    ratio : float
        Of the ratio test of matches.
    geometry : str
        What the matches of two photos must agree on: one of
        :data:`hiernorm.vision.geometry.GEOMETRIES`. A homography, where it explains nearly as
        much, lets fewer wrong matches pass than epipolar lines do, but only points of the plane.
    threshold : float
        How many pixels a match may be off.
    pairs, seed, variation
        As in :class:`hiernorm.scenes.maker.Recipe`; of the variation, only the detector's noise.
    """

    keypoints: int = 8000
    longest_side: int = 2000
    ratio: float = 0.9
    geometry: str = "auto"
    threshold: float = 2.0
    pairs: int = 50_000
    seed: int = 0
    variation: Variation = field(default_factory=Variation)

    def __post_init__(self) -> None:
        for name, least in (("keypoints", 1), ("longest_side", 1), ("pairs", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {self.ratio}")


def make_matched_scene(
    photos: Sequence[Path],
    out: Path,
    recipe: TrackRecipe | None = None,
    *,
    model: Model | None = None,
    on_step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Made:
    """Make a scene in the UBC format from photos of one place, without any made view.

    Every photo is described, every two are matched and must agree with one geometry, and
    matches are joined into points that two or more photos see.

    Parameters
    ----------
    photos
        Files of photos that overlap.
    out
        Folder to make, or zip if the name ends in ``.zip``. Appears when it is complete.
    recipe
        Numbers of keypoints and pairs, thresholds, the seed.
    model
        Describes keypoints; ``hn16`` by default.
    on_step
        Called with what was done, how many of it and of how many.
    """
    recipe = recipe or TrackRecipe()
    describing = Describing(limit=recipe.keypoints, longest_side=recipe.longest_side)
    model = model or load_model(describing.model)
    described = []
    for photo in photos:
        described.append(describe_photo(photo, describing, model))
        on_step("photos described", len(described), len(photos))
    tracks = _find_tracks(described, recipe, on_step)
    if len(tracks) < 2:
        raise ValueError(
            f"a scene needs 2 points or more, found {len(tracks)} in {len(photos)} photos; "
            "points are found where photos show the same place"
        )
    frames = [one.frames for one in described]
    with SceneWriter(out, pairs=recipe.pairs, seed=recipe.seed) as writer:
        points = 0
        for patches, images, seen in _see_tracks(photos, frames, tracks, recipe):
            writer.add(points, patches, images, seen)
            points += 1
        return Made(len(photos), points, len(writer))


def _find_tracks(
    described: Sequence[PhotoFeatures],
    recipe: TrackRecipe,
    on_step: Callable[[str, int, int], None],
) -> list[Int64Array]:
    """Match every two photos, keep what agrees, join it."""
    couples = list(combinations(range(len(described)), 2))
    matches = {}
    for number, (i, j) in enumerate(couples):
        pairing = match_photos(
            described[i],
            described[j],
            ratio=recipe.ratio,
            geometry=recipe.geometry,
            threshold=recipe.threshold,
        )
        if pairing.geometry.count >= LEAST_INLIERS:
            matches[i, j] = pairing.matches.pairs[pairing.geometry.inliers]
        on_step("pairs of photos matched", number + 1, len(couples))
    frames = [one.frames for one in described]
    tracks = link_matches([len(one) for one in frames], matches)
    return keep_apart(tracks, frames, LEAST_DISTANCE)


def _see_tracks(
    photos: Sequence[Path],
    frames: Sequence[Frames],
    tracks: Sequence[Int64Array],
    recipe: TrackRecipe,
) -> Iterator[tuple[UInt8Array, Int64Array, Frames]]:
    """Patches, photo numbers and frames of each track, in the order of the tracks."""
    views = np.concatenate(tracks)
    patches = np.empty((len(views), SIZE, SIZE), np.uint8)
    places = np.empty((4, len(views)))
    inside = np.zeros(len(views), bool)
    for number, photo in enumerate(photos):
        rows = np.flatnonzero(views[:, 0] == number)
        rng = np.random.default_rng([recipe.seed, number])
        image = read_grey(photo)
        seen = jitter(frames[number][views[rows, 1]], recipe.variation, rng)
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

"""The maker of scenes from photos of one place: points are what several photos agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.scenes.maker import LEAST_DISTANCE, Made
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
"""Photos that agree on fewer matches may agree by chance: they are taken not to overlap."""


@dataclass(frozen=True)
class TrackRecipe:
    """What a scene of real views is made with.

    Attributes
    ----------
    descriptor : str
        What keypoints are matched by: ``"sift"``, so that points do not depend on the network
        that is to be trained or judged on them, or a model that ships with the package.
    keypoints : int
        Keypoints per photo at most, the strongest.
    partners : int
        Each photo is matched with so many others, those whose descriptors are nearest; 0 matches
        every two photos.
    longest_side : int
        Larger photos are searched for keypoints at this many pixels.
    ratio : float
        Largest ratio of the distances to the nearest and the second nearest keypoint.
    geometry : str
        What the matches of two photos must agree on: one of
        :data:`hiernorm.vision.geometry.GEOMETRIES`. A homography, where it explains nearly as
        much, lets fewer wrong matches pass than epipolar lines do, but only points of the plane.
    threshold : float
        How many pixels a match may be off.
    pairs, seed, variation
        As in :class:`hiernorm.learn.scenes.maker.Recipe`; of the variation, only the noise of the
        detector.
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


def make_matched_scene(
    photos: Sequence[Path],
    out: Path,
    recipe: TrackRecipe | None = None,
    *,
    on_step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Made:
    """Make a scene in the UBC format from photos of one place, without any made view.

    Every photo is described and matched with its partners. Matches of two photos must agree with
    one geometry. They are joined into points that two or more photos see.

    Parameters
    ----------
    photos
        Files of photos that overlap.
    out
        Folder to make, or zip if the name ends in ``.zip``. Appears when it is complete.
    recipe
        Numbers of keypoints and pairs, thresholds, the seed.
    on_step
        Called with what was done, how many of it and of how many.
    """
    recipe = recipe or TrackRecipe()
    describe = _make_describer(recipe)
    described = []
    for photo in photos:
        described.append(describe(photo))
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


def _make_describer(recipe: TrackRecipe) -> Callable[[Path], PhotoFeatures]:
    """What describes a photo as the recipe says."""
    if recipe.descriptor == "sift":
        return lambda photo: describe_photo_by_sift(
            photo, limit=recipe.keypoints, longest_side=recipe.longest_side
        )
    describing = FeatureSettings(
        model=recipe.descriptor, limit=recipe.keypoints, longest_side=recipe.longest_side
    )
    model = load_model(recipe.descriptor)
    return lambda photo: describe_photo(photo, describing, model)


def _find_tracks(
    described: Sequence[PhotoFeatures],
    recipe: TrackRecipe,
    on_step: Callable[[str, int, int], None],
) -> list[Int64Array]:
    """Match photos with their partners, keep what agrees, join it."""
    frames = [one.frames for one in described]
    sets = [DescriptorSet(one.descriptors) for one in described]
    couples = choose_partners([one.rows for one in sets], recipe.partners)
    matches = {}
    for number, (i, j) in enumerate(couples):
        pairs = match_descriptors(sets[i], sets[j], ratio=recipe.ratio).pairs
        agreement = estimate_geometry(
            frames[i].centres[pairs[:, 0]],
            frames[j].centres[pairs[:, 1]],
            geometry=recipe.geometry,
            threshold=recipe.threshold,
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

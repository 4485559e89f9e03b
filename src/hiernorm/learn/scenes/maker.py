"""The maker of scenes: keypoints of photos, seen again through homographies, light and noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.scenes.views import Variation, draw_view, jitter, lie_inside, transport
from hiernorm.learn.scenes.writer import SceneWriter
from hiernorm.vision.frames import Frames
from hiernorm.vision.keypoints import detect
from hiernorm.vision.patches import cut_patches, patch_corners
from hiernorm.vision.photos import read_grey

LEAST_SIDE = 96
"""Smaller pictures hold no patch worth having."""

LEAST_DISTANCE = 4.0
"""Two points of a photo are at least this far apart, in sigmas of the finer one: closer ones
look so alike that to call their patches different would be wrong."""


@dataclass(frozen=True)
class Recipe:
    """What a scene is made with.

    Attributes
    ----------
    points : int
        Points per photo at most: the strongest keypoints that lie apart from each other.
    views : int
        Views of each point at most; a view in which its patch would leave the photo is left out.
    pairs : int
        Matching pairs in the match file at most, and as many non-matching ones.
    seed : int
        Seed of everything that is drawn.
    variation : Variation
        How much views and frames vary.
    """

    points: int = 1000
    views: int = 5
    pairs: int = 50_000
    seed: int = 0
    variation: Variation = field(default_factory=Variation)

    def __post_init__(self) -> None:
        for name, least in (("points", 1), ("views", 2), ("pairs", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True)
class Made:
    """What a scene consists of."""

    photos: int
    points: int
    patches: int


def make_scene(
    photos: Sequence[Path],
    out: Path,
    recipe: Recipe | None = None,
    *,
    on_photo: Callable[[Path], None] = lambda photo: None,
) -> Made:
    """Make a scene in the UBC format from photos: the same bytes for the same photos and recipe.

    Parameters
    ----------
    photos
        Files of photos. Their order counts, their names do not.
    out
        Folder to make, or zip if the name ends in ``.zip``. Appears when it is complete.
    recipe
        Numbers of points, views and pairs, the seed, and how much views vary.
    on_photo
        Called after each photo.

    Examples
    --------
    >>> import tempfile
    >>> from hiernorm.learn.scenes.embedded import embedded_photos
    >>> out = Path(tempfile.mkdtemp()) / "coins.zip"
    >>> made = make_scene(embedded_photos()[5:6], out, Recipe(points=20, views=3))
    >>> made.points, made.patches
    (20, 60)
    """
    recipe = recipe or Recipe()
    points = 0
    with SceneWriter(out, pairs=recipe.pairs, seed=recipe.seed) as writer:
        for number, photo in enumerate(photos):
            for patches, images, frames in _see_points(read_grey(photo), number, recipe):
                writer.add(points, patches, images, frames)
                points += 1
            on_photo(photo)
        if points < 2:
            raise ValueError(
                f"a scene needs 2 points or more, found {points} in {len(photos)} photos; "
                f"photos need detail and {LEAST_SIDE} pixels or more along each side"
            )
    return Made(len(photos), points, len(writer))


def _see_points(
    photo: UInt8Array, number: int, recipe: Recipe
) -> list[tuple[UInt8Array, Int64Array, Frames]]:
    """Patches, image numbers and frames of each point of a photo, in the order of the points."""
    if min(photo.shape) < LEAST_SIDE:
        return []
    # A photo's own stream: what it yields does not depend on the photos before it.
    rng = np.random.default_rng([recipe.seed, number])
    points = _choose_points(photo, recipe.points)
    seen: list[tuple[UInt8Array, Frames]] = []
    is_inside = np.zeros((recipe.views, len(points)), bool)
    for view_number in range(recipe.views):
        view = draw_view(photo, recipe.variation, rng)
        frames = jitter(transport(points, view.homography), recipe.variation, rng)
        is_inside[view_number] = lie_inside(patch_corners(frames), view, photo)
        seen.append((cut_patches(view.image, frames), frames))
    patches = np.stack([cut for cut, _ in seen])
    places = [np.stack([getattr(f, name) for _, f in seen]) for name in Frames.__dataclass_fields__]
    rows = []
    for point in np.flatnonzero(is_inside.sum(axis=0) >= 2):
        views = np.flatnonzero(is_inside[:, point])
        frames = Frames(*(place[views, point] for place in places))
        rows.append((patches[views, point], number * recipe.views + views, frames))
    return rows


def _choose_points(photo: UInt8Array, limit: int) -> Frames:
    """The strongest keypoints whose patches lie inside the photo, apart from each other."""
    found = detect(photo)
    corners = patch_corners(found)
    height, width = photo.shape
    inside = ((corners >= 0) & (corners <= (width - 1, height - 1))).all(axis=(1, 2))
    found = found[np.flatnonzero(inside)]
    kept: list[int] = []
    for candidate in range(len(found)):
        others = found[np.array(kept, np.int64)]
        distance = np.hypot(others.x - found.x[candidate], others.y - found.y[candidate])
        finer = np.minimum(others.sigma, found.sigma[candidate])
        if (distance >= LEAST_DISTANCE * finer).all():
            kept.append(candidate)
            if len(kept) == limit:
                break
    return found[np.array(kept, np.int64)]

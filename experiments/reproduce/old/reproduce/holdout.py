"""Queries of a scene, and what must stay out of every database because of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm.learn.phototour import PhotoTour
from hiernorm.reference import Int64Array

FIRST, STRIDE = 5, 10
"""Every tenth image is one that queries come from, beginning with the sixth."""


@dataclass(frozen=True)
class Split:
    """A scene's patches as queries and as entries.

    Attributes
    ----------
    queries : (m,) int64
        Rows of the scene.
    matches : (m,) int64
        For each query a row that shows the same point in another view.
    entries : (n,) int64
        Rows that databases may have: none of a query's own view.
    images : frozenset of int
        Images held out whole; empty where patches are held out one by one.
    """

    queries: Int64Array
    matches: Int64Array
    entries: Int64Array
    images: frozenset[int]


def split_scene(scene: PhotoTour, most: int, seed: int = 0) -> Split:
    """Choose at most ``most`` queries, each of a point that the other patches show too.

    Where the scene says of which image each patch is, some images are held out whole, so that no
    database holds a query's own view. Official scenes do not say it: there the queries' patches
    alone are held out.

    Parameters
    ----------
    scene
        With ``interest.txt``, whose first column is the image, or without.
    most
        Queries.
    seed
        Of their choice.
    """
    points = scene.points
    images = None if scene.interest is None else scene.interest[:, 0].astype(np.int64)
    if images is not None and (held := _held_out(images)):
        away = np.isin(images, list(held))
        split = _choose(points, np.flatnonzero(away), np.flatnonzero(~away), most, seed, held)
        if len(split.queries) >= min(most, len(points) // (2 * STRIDE)):
            return split
    rng = np.random.default_rng([seed, 1])
    _, first = np.unique(points, return_index=True)
    asked = rng.permutation(first)[: max(1, min(most, len(first) // 2))]
    rest = np.setdiff1d(np.arange(len(points)), asked)
    return _choose(points, asked, rest, most, seed, frozenset())


def _held_out(images: Int64Array) -> frozenset[int]:
    """Images to hold out: every tenth, or the last of a few; none if there is one image only."""
    known = np.unique(images)
    if len(known) < 2:
        return frozenset()
    return frozenset(int(i) for i in (known[FIRST::STRIDE] if len(known) > FIRST else known[-1:]))


def _choose(
    points: Int64Array,
    candidates: Int64Array,
    entries: Int64Array,
    most: int,
    seed: int,
    images: frozenset[int],
) -> Split:
    """Draw queries among the candidates whose point has an entry."""
    known, first = np.unique(points[entries], return_index=True)
    candidates = candidates[np.isin(points[candidates], known)]
    queries = np.random.default_rng(seed).permutation(candidates)[:most]
    matches = entries[first[np.searchsorted(known, points[queries])]]
    return Split(queries, matches, entries, images)

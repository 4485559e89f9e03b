"""Pairs of patches that show the same point, and as many that do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.reference import Int64Array


def draw_pairs(points: npt.ArrayLike, count: int, seed: int = 0) -> Int64Array:
    """Draw ``count`` matching and ``count`` non-matching pairs, the same for the same seed.

    No pair appears twice. Matching pairs come first.

    Parameters
    ----------
    points
        Point that each patch shows, (n,) integers.
    count
        Pairs of each kind; fewer where the patches do not have as many.
    seed
        Seed of the choice.

    Returns
    -------
    (2 * pairs, 2) int64
        Positions of two patches each, the smaller first.

    Examples
    --------
    >>> draw_pairs([7, 7, 9, 9], 2)[:2].tolist()
    [[0, 1], [2, 3]]
    """
    points = np.asarray(points, np.int64)
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    matching = _all_matching(points)
    n = len(points)
    others = n * (n - 1) // 2 - len(matching)
    if not len(matching) or not others:
        raise ValueError(
            f"pairs of both kinds need a point with two patches and a second point; "
            f"got {n} patches of {len(np.unique(points))} points"
        )
    count = min(count, len(matching), others)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(matching))[:count])
    return np.concatenate((matching[chosen], _draw_others(points, count, rng)))


def _all_matching(points: Int64Array) -> Int64Array:
    """Every pair of patches of one point, in order."""
    order = np.argsort(points, kind="stable")
    _, starts, sizes = np.unique(points[order], return_index=True, return_counts=True)
    blocks = [np.empty((0, 2), np.int64)]
    for size in np.unique(sizes):
        first, second = np.triu_indices(size, 1)
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        blocks.append(np.stack((members[:, first], members[:, second]), -1).reshape(-1, 2))
    pairs = np.concatenate(blocks)
    return pairs[np.lexsort(pairs.T[::-1])]


def _draw_others(points: Int64Array, count: int, rng: np.random.Generator) -> Int64Array:
    """Draw ``count`` different pairs of patches of two points each; there must be as many."""
    n = len(points)
    codes = np.empty(0, np.int64)
    while len(codes) < count:
        first, second = np.sort(rng.integers(0, n, (2, 2 * count + 16)), axis=0)
        fresh = (first * n + second)[points[first] != points[second]]
        codes = np.concatenate((codes, fresh))
        _, appeared = np.unique(codes, return_index=True)
        codes = codes[np.sort(appeared)]
    return np.stack(np.divmod(codes[:count], n), -1)

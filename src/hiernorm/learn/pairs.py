"""Pairs of patches that show the same point, and pairs that do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Int64Array

MOST_PAIRS = 50_000
"""Of each kind that :func:`make_pairs` makes; the largest official match files have as many."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of patches: row ``i`` is patch ``first[i]`` with patch ``second[i]``.

    Attributes
    ----------
    first, second
        Patch numbers, ``(m,)``.
    matching
        Whether both show the same point, bool ``(m,)``.
    """

    first: Int64Array
    second: Int64Array
    matching: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)


def parse_pairs(table: Int64Array, points: Int64Array, name: str) -> Pairs:
    """Return the pairs of a match file: rows of patch, point, 0, patch, point, 0, (0).

    Raises
    ------
    ValueError
        If a row names a patch that is not there, or another point than ``info.txt``.
    """
    if len(table) == 0 or table.shape[1] < 5:
        raise ValueError(f"{name} must have rows of: patch point 0 patch point 0 0")
    for patch, point in ((table[:, 0], table[:, 1]), (table[:, 3], table[:, 4])):
        outside = (patch < 0) | (patch >= len(points))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"{name}, row {row + 1}: patch {patch[row]}, the scene has {len(points):,} patches"
            )
        wrong = points[patch] != point
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{name}, row {row + 1}: patch {patch[row]} is said to show point {point[row]}, "
                f"info.txt says {points[patch[row]]}"
            )
    return Pairs(table[:, 0].copy(), table[:, 3].copy(), table[:, 1] == table[:, 4])


def make_pairs(points: Int64Array, most: int = MOST_PAIRS, seed: int = 0) -> Pairs:
    """Make as many matching as non-matching pairs, the same ones on every run.

    Matching: every two patches of a point, or a random ``most`` of them. Non-matching: random
    patches of different points.

    Examples
    --------
    >>> pairs = make_pairs(np.array([0, 0, 1, 1, 1, 2]))
    >>> len(pairs), int(pairs.matching.sum())
    (8, 4)
    """
    order = np.argsort(points, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(points[order])) + 1)
    if len(groups) < 2 or max(map(len, groups)) < 2:
        raise ValueError(
            "pairs need at least two points and a point with two patches; "
            f"got {len(groups)} points, {len(points)} patches"
        )
    twos = [np.array(np.triu_indices(len(g), 1)) for g in groups]
    matches = np.concatenate([g[t] for g, t in zip(groups, twos, strict=True)], axis=1)
    rng = np.random.default_rng(seed)
    if matches.shape[1] > most:
        matches = matches[:, np.sort(rng.choice(matches.shape[1], most, replace=False))]
    count = matches.shape[1]
    others = rng.integers(0, len(points), size=(2, count))
    while (same := points[others[0]] == points[others[1]]).any():
        others[:, same] = rng.integers(0, len(points), size=(2, int(same.sum())))
    first, second = np.concatenate([matches, others], axis=1)
    return Pairs(first, second, np.arange(2 * count) < count)

"""Rows of vectors: drawn at random, of unit length, bounded by their leading directions."""

from __future__ import annotations

import numpy as np

from hiernorm.reference import Float32Array, Float64Array
from hiernorm.rotation import fit_rotation

PART_QUERIES = 20
"""Queries whose scores are held at a time."""


def sample_rows(rows: Float32Array, most: int, seed: int = 0) -> Float32Array:
    """At most so many rows, drawn from all of them, in the order in which they were.

    Examples
    --------
    >>> rows = np.arange(100, dtype=np.float32)[:, None]
    >>> sample_rows(rows, 3)[:, 0].tolist()
    [20.0, 36.0, 82.0]
    >>> len(sample_rows(rows, 200))
    100
    """
    chosen = np.random.default_rng(seed).permutation(len(rows))[:most]
    return np.asarray(rows[np.sort(chosen)])


def unit_rows(rows: Float32Array) -> Float32Array:
    """Rows of length one as float32; rows of length zero are left out.

    Examples
    --------
    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    kept = norms[:, 0] > 0
    units: Float32Array = (wide[kept] / norms[kept]).astype(np.float32)
    return units


def bound_share(entries: Float32Array, queries: Float32Array, major: int) -> float:
    """Share of entries whose bound after a PCA of the entries reaches the best score."""
    rotation = fit_rotation(entries)
    turned, asked = (rotation.apply(rows) for rows in (entries, queries))
    tails, asked_tails = (_tail(rows, major) for rows in (turned, asked))
    left = 0
    for first in range(0, len(asked), PART_QUERIES):
        part = asked[first : first + PART_QUERIES]
        majors = part[:, :major] @ turned[:, :major].T
        best = (majors + part[:, major:] @ turned[:, major:].T).max(axis=1, keepdims=True)
        bound = majors + np.outer(asked_tails[first : first + PART_QUERIES], tails)
        left += int((bound >= best).sum())
    return left / (len(asked) * len(turned))


def _tail(rows: Float64Array, major: int) -> Float64Array:
    norms: Float64Array = np.sqrt(np.square(rows[:, major:]).sum(axis=1))
    return norms

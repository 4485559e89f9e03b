"""Rows of vectors: drawn at random, of unit length."""

from __future__ import annotations

import numpy as np

from hiernorm.reference import Float32Array


def sample_rows(rows: Float32Array, most: int, seed: int = 0) -> Float32Array:
    """At most so many rows, drawn from all of them, in the order in which they were.

    Examples
    --------
    >>> rows = np.arange(100, dtype=np.float32)[:, None]
    >>> sample_rows(rows, 3)[:, 0].tolist()
    [12.0, 34.0, 47.0]
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

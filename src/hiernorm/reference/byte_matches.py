"""Matching of byte vectors by angles: the specification, in plain NumPy.

The rule is that of COLMAP's brute-force matcher (``FindBestMatchesBruteForce``). Its arc cosine is
a float32 one of the system's library, which may be off by one unit in the last place. Here the arc
cosine is rounded correctly, as glibc does from 2.41 on, so the matches are the same everywhere.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array, Int64Array, UInt8Array

SQUARED_NORM = 512**2
"""Squared length of SIFT descriptors in bytes: the product at the angle 0."""


@cache
def product_angles() -> Float32Array:
    """The angle of each product 0, 1, ... :data:`SQUARED_NORM`, in radians; it only falls.

    No arc cosine of such a product lies within 600 units in the last place (of float64) of the
    middle between two float32 values, so any float64 arc cosine gives the same table.
    """
    cosines = np.arange(SQUARED_NORM + 1) / SQUARED_NORM
    return np.arccos(cosines).astype(np.float32)


def angle_limits(max_ratio: float) -> npt.NDArray[np.int32]:
    """The ratio test in integers: for each best product, the largest second best that passes.

    -1 where none passes. A pair passes if ``angle(best) < max_ratio * angle(second)``, in float32.

    Examples
    --------
    >>> limits = angle_limits(0.8)
    >>> int(limits[250_000]), int(limits[262_144])
    (243252, 262143)
    """
    _check_positive("max_ratio", max_ratio)
    angles = product_angles()
    shares = np.float32(max_ratio) * angles
    # Both fall, so the second bests that pass are 0, 1, ... up to the limit.
    limits = np.searchsorted(-shares, -angles, side="left") - 1
    return limits.astype(np.int32)


def least_product(max_distance: float) -> int:
    """The smallest product whose angle is at most ``max_distance``; products of 0 never match.

    Examples
    --------
    >>> least_product(0.7)
    200499
    """
    _check_positive("max_distance", max_distance)
    near = product_angles() <= np.float32(max_distance)
    return max(1, int(np.argmax(near)))


def match_bytes(
    a: UInt8Array,
    b: UInt8Array,
    max_ratio: float = 0.8,
    max_distance: float = 0.7,
    cross_check: bool = True,
) -> Int64Array:
    """Matches ``(m, 2)`` of the rows of ``a`` with rows of ``b``, in the order of ``a``.

    The best of several equal products is the one of the smallest row.

    Examples
    --------
    >>> a = np.kron(np.eye(2, dtype=np.uint8), np.uint8([255, 255, 255, 255]))
    >>> match_bytes(a, a[::-1]).tolist()
    [[0, 1], [1, 0]]
    """
    if len(a) == 0 or len(b) == 0:
        return np.empty((0, 2), np.int64)
    products = a.astype(np.int64) @ b.astype(np.int64).T
    limits, least = angle_limits(max_ratio), least_product(max_distance)
    forth = _one_way(products, limits, least)
    kept = np.flatnonzero(forth >= 0)
    if cross_check:
        back = _one_way(products.T, limits, least)
        kept = kept[back[forth[kept]] == kept]
    return np.column_stack((kept, forth[kept]))


def _one_way(products: Int64Array, limits: npt.NDArray[np.int32], least: int) -> Int64Array:
    """For each row the column of its match, or -1."""
    columns = np.argmax(products, axis=1)
    rows = np.arange(len(products))
    best = products[rows, columns]
    others = products.copy()
    others[rows, columns] = 0
    second = others.max(axis=1)
    won = (best >= least) & (second <= limits[np.minimum(best, SQUARED_NORM)])
    return np.where(won, columns, -1)


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}")

"""How codes are fitted to the data: the rotation, the size of the major, the steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hiernorm._core import Fit
from hiernorm._core import Index as CoreIndex
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.rotation import Rotation, choose_major, fit_rotation, unit_rows

SAMPLE_VALUES = 1 << 23
"""At most this many numbers of the data are looked at: 65,536 rows of 128 dimensions."""
PLANNING_ROWS = 8192
"""Rows of the sample on which the size of the major is chosen."""
HEADROOM = 1.05
"""Steps leave this much room above the largest value of a sample that is not all of the data."""
SETTLED = 16384
"""A fit on this many entries is kept until optimize() is called."""
PART_ROWS = 8192
"""Rows that are rotated at a time."""
LEAST_SPREAD = 1e-3
"""Of the squared norms around their centre, as a share of the largest: entries to come differ."""
Level = tuple[float, float, float]
NO_LEVEL: Level = (0.0, 1.0, 0.0)
GROWTH = 4
"""Before that, an index that has grown by this factor is fitted anew."""


def choose_fit(rows: Float32Array, major: int | None, *, rotate: bool, metric: str) -> Fit:
    """The fit for ``rows`` ``(n, d)``; plain vectors are rotated, HN vectors are not."""
    n, d = rows.shape
    sample = _spread(rows, max(1, SAMPLE_VALUES // d))
    headroom = 1.0 if len(sample) == n else HEADROOM
    rotation = fit_rotation(sample) if rotate else None
    view = sample.astype(np.float64) if rotation is None else rotation.apply(sample)
    if metric == "cosine":
        view = unit_rows(view)
    if major is None:
        assert rotation is not None
        major = choose_major(_spread(view, PLANNING_ROWS), n)
    level = NO_LEVEL
    if metric == "l2":
        level = choose_level(sample, view[:, :major])
        view = np.insert(view, major, _levels(sample, level), axis=1)
    matrix, error = (None, 0.0) if rotation is None else (rotation.matrix, rotation.error)
    return Fit.choose(d, major, metric, view, headroom, matrix, error, level)


def choose_level(sample: Float32Array, majors: Float64Array) -> Level:
    """Centre, weight and base norm of the dimension that turns distances into inner products.

    The level of an entry is ``(centre - |x|**2) / weight``: the weight makes it about as large as
    the other dimensions of the major, so that one step serves all.
    """
    squares = np.square(sample.astype(np.float64)).sum(axis=1)
    low, high = float(squares.min()), float(squares.max())
    spread = max((high - low) / 2, LEAST_SPREAD * high)
    weight = spread / (float(np.abs(majors).max()) or 1.0)
    return (low + high) / 2, weight or 1.0, float(np.sqrt(high)) or 1.0


def _levels(rows: Float32Array, level: Level) -> Float64Array:
    centre, weight, _ = level
    levels: Float64Array = (centre - np.square(rows.astype(np.float64)).sum(axis=1)) / weight
    return levels


def majors_of(fit: Fit, rotation: Rotation | None, rows: Float32Array) -> Float32Array:
    """The majors of ``rows``, by which they are grouped: ``(n, K)``."""
    if rotation is None:
        return np.ascontiguousarray(rows[:, : fit.major])
    return np.concatenate([rotation.leading(part, fit.major) for part in _parts(rows, PART_ROWS)])


def fill(core: CoreIndex, ids: Int64Array, rows: Float32Array) -> None:
    """Add entries to a fitted core; plain vectors are rotated part by part on the way in."""
    fit = core.fit()
    rotation = None if fit is None else rotation_of(fit)
    if fit is None or rotation is None:
        core.add(rows, ids)
        return
    core.check(rows, ids)
    order = core.group(rows, majors_of(fit, rotation, rows), ids)
    for first in range(0, len(rows), PART_ROWS):
        part = slice(first, first + PART_ROWS) if order is None else order[first:][:PART_ROWS]
        more = max(0, len(rows) - first - PART_ROWS)
        core.write(first, rows[part], ids[part], rotation.apply(rows[part]), more)
    core.publish(ids)


def rotation_of(fit: Fit) -> Rotation | None:
    """The rotation that a fit was chosen with."""
    matrix = fit.rotation()
    return None if matrix is None else Rotation(matrix, fit.rotation_error)


def is_due(fitted_on: int, entries: int, ungrouped: int) -> bool:
    """Whether a fit made on few entries, or cells that hold less than half, should be made anew.

    Cells wait until the index has doubled: where they do not pay, all entries stay ungrouped.
    """
    outgrown = fitted_on < SETTLED and entries >= GROWTH * fitted_on
    scattered = ungrouped > max(SETTLED, entries // 2) and entries >= 2 * fitted_on
    return outgrown or scattered


def _parts(rows: Float32Array, size: int) -> Iterator[Float32Array]:
    return (rows[first : first + size] for first in range(0, len(rows), size))


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` rows, evenly spread over all."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]

"""How codes are fitted to the data: the rotation, the size of the major, the steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hiernorm._core import Fit
from hiernorm._core import Index as CoreIndex
from hiernorm.reference import Float32Array, Int64Array
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
GROWTH = 4
"""Before that, an index that has grown by this factor is fitted anew."""


def choose_fit(rows: Float32Array, major: int | None, *, rotate: bool, cosine: bool) -> Fit:
    """The fit for ``rows`` ``(n, d)``; plain vectors are rotated, HN vectors are not."""
    n, d = rows.shape
    sample = _spread(rows, max(1, SAMPLE_VALUES // d))
    headroom = 1.0 if len(sample) == n else HEADROOM
    if not rotate:
        assert major is not None
        view = sample.astype(np.float64)
        return Fit.choose(
            d, major, cosine, unit_rows(view) if cosine else view, headroom, None, 0.0
        )
    rotation = fit_rotation(sample)
    view = rotation.apply(sample)
    if cosine:
        view = unit_rows(view)
    if major is None:
        major = choose_major(_spread(view, PLANNING_ROWS), n)
    return Fit.choose(d, major, cosine, view, headroom, rotation.matrix, rotation.error)


def fill(core: CoreIndex, ids: Int64Array, rows: Float32Array) -> None:
    """Add entries to a fitted core; plain vectors are rotated part by part on the way in."""
    fit = core.fit()
    matrix = None if fit is None else fit.rotation()
    if fit is None or matrix is None:
        core.add(rows, ids)
        return
    rotation = Rotation(matrix, fit.rotation_error)
    core.check(rows, ids)
    majors = np.concatenate([rotation.leading(part, fit.major) for part in _parts(rows, PART_ROWS)])
    order = core.group(rows, majors, ids)
    del majors
    for first in range(0, len(rows), PART_ROWS):
        part = slice(first, first + PART_ROWS) if order is None else order[first:][:PART_ROWS]
        more = max(0, len(rows) - first - PART_ROWS)
        core.write(first, rows[part], ids[part], rotation.apply(rows[part]), more)
    core.publish(ids)


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

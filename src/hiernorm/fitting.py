"""How the encoding is fitted to the data: the rotation, the size of the major, the steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hiernorm._core import Addition, Encoding
from hiernorm._core import Index as CoreIndex
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.progress import ProgressCallback
from hiernorm.rotation import Rotation, choose_major, fit_rotation, unit_rows

SAMPLE_VALUES = 1 << 23
"""At most this many numbers of the data are looked at: 65,536 rows of 128 dimensions."""
PLANNING_ROWS = 8192
"""Rows of the sample on which the size of the major is chosen."""
HEADROOM = 1.05
"""Steps leave this much room above the largest value of a sample that is not all of the data."""
SETTLED = 16384
"""An encoding fitted to this many entries is kept until optimize() is called."""
PART_ROWS = 8192
"""Rows that are rotated at a time."""
LEAST_SPREAD = 1e-3
"""Of the squared norms around their centre, as a share of the largest: entries to come differ."""
Lift = tuple[float, float, float]
"""Centre, weight and base norm; see :func:`choose_lift`."""
NO_LIFT: Lift = (0.0, 1.0, 0.0)
GROWTH = 4
"""Before that, an index that has grown by this factor is fitted anew."""


def choose_encoding(
    rows: Float32Array, major: int | None, *, rotate: bool, metric: str
) -> Encoding:
    """The encoding for ``rows`` ``(n, d)``; plain vectors are rotated, HN vectors are not."""
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
    lift = NO_LIFT
    if metric == "l2":
        lift = choose_lift(sample, view[:, :major])
        view = np.insert(view, major, _lifts(sample, lift), axis=1)
    matrix, error = (None, 0.0) if rotation is None else (rotation.matrix, rotation.error)
    return Encoding.choose(d, major, metric, view, headroom, matrix, error, lift)


def choose_lift(sample: Float32Array, majors: Float64Array) -> Lift:
    """Centre, weight and base norm of the dimension that turns distances into inner products.

    The lift of an entry is ``(centre - |x|**2) / weight``: the weight makes it about as large as
    the other dimensions of the major, so that one step serves all.
    """
    squares = np.square(sample.astype(np.float64)).sum(axis=1)
    low, high = float(squares.min()), float(squares.max())
    spread = max((high - low) / 2, LEAST_SPREAD * high)
    weight = spread / (float(np.abs(majors).max()) or 1.0)
    return (low + high) / 2, weight or 1.0, float(np.sqrt(high)) or 1.0


def _lifts(rows: Float32Array, lift: Lift) -> Float64Array:
    centre, weight, _ = lift
    lifts: Float64Array = (centre - np.square(rows.astype(np.float64)).sum(axis=1)) / weight
    return lifts


def majors_of(encoding: Encoding, rotation: Rotation | None, rows: Float32Array) -> Float32Array:
    """The majors of ``rows``, by which they are grouped: ``(n, K)``."""
    if rotation is None:
        return np.ascontiguousarray(rows[:, : encoding.major])
    return np.concatenate(
        [rotation.leading(part, encoding.major) for part in _parts(rows, PART_ROWS)]
    )


def fill(
    core: CoreIndex,
    ids: Int64Array,
    rows: Float32Array,
    *,
    replace: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Add entries to a core; plain vectors are rotated part by part on the way in.

    To ``replace`` entries with the same ids, check rows and ids before.
    """
    report = progress or (lambda done, total: None)
    encoding = core.encoding()
    rotation = None if encoding is None else rotation_of(encoding)
    if encoding is None or rotation is None:
        core.add(rows, ids, replace)
        report(len(rows), len(rows))
        return
    if not replace:
        core.check(rows, ids)  # before anything is computed from them
    majors = majors_of(encoding, rotation, rows)
    with Addition(core, rows, majors, ids, checked=True) as addition:
        order = addition.order
        for first in range(0, len(rows), PART_ROWS):
            part = slice(first, first + PART_ROWS) if order is None else order[first:][:PART_ROWS]
            addition.write(rows[part], ids[part], rotation.apply(rows[part]))
            report(min(first + PART_ROWS, len(rows)), len(rows))
        addition.publish(replace)


def rotation_of(encoding: Encoding) -> Rotation | None:
    """The rotation that an encoding was chosen with."""
    matrix = encoding.rotation()
    return None if matrix is None else Rotation(matrix, encoding.rotation_error)


def is_due(fitted_on: int, entries: int, ungrouped: int) -> bool:
    """Whether an encoding fitted to few entries, or cells of less than half, should be made anew.

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

"""How the encoding is fitted to the data: the rotation, the size of the major, the steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hiernorm._core import LEAST_GROUPED, Addition, Encoding
from hiernorm._core import Index as CoreIndex
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.planning import prefers_flat
from hiernorm.progress import ProgressCallback
from hiernorm.rotation import Rotation, choose_major, fit_rotation, plan_major, unit_rows
from hiernorm.threads import one_blas_thread

SAMPLE_VALUES = 1 << 23
"""At most this many numbers of the data are looked at: 65,536 rows of 128 dimensions."""
PLANNING_ROWS = 8192
"""Rows of the sample on which the size of the major is chosen."""
LEAST_PLANNED = 1024
"""Below this many entries codes are made, or none, without a trial."""
FEW_VALUES = 1 << 18
"""Of those, entries with at most this many numbers (one MiB) stay without codes: a core has them in
its cache, and the fit of a rotation takes as long as some thousand scans of them."""
TRIAL_ROWS = 2048
"""Rows of the sample on which codes are tried."""
TRIAL_DIMS = 256
"""For vectors of more dimensions a rotation is most of the work: the trial has that of the fit, and
is made in doubt only. For others it has its own, and saves the fit where codes do not pay."""
DOUBTFUL = 0.25
"""Share of the entries that survive the major, as expected, above which codes are tried."""
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


@dataclass(frozen=True)
class _Sample:
    """Rows of the data, and the view of them that is encoded."""

    rows: Float32Array
    rotation: Rotation | None
    view: Float64Array


def _sample(rows: Float32Array, most: int, *, rotate: bool, metric: str) -> _Sample:
    """At most ``most`` of ``rows``, with the rotation that is fitted to them."""
    sample = _spread(rows, most)
    rotation = fit_rotation(sample) if rotate else None
    view = sample.astype(np.float64) if rotation is None else rotation.apply(sample)
    return _Sample(sample, rotation, unit_rows(view) if metric == "cosine" else view)


def choose_encoding(
    rows: Float32Array, major: int | None, *, rotate: bool, metric: str, cells: bool
) -> Encoding:
    """The encoding for ``rows`` ``(n, d)``; plain vectors are rotated, HN vectors are not.

    ``cells`` says whether many entries may be grouped: the size of the major depends on it.

    It is fitted to a sample: at most SAMPLE_VALUES numbers, of rows that are evenly spread over
    all. Bounds use what is measured on every entry, so that answers never depend on the sample.
    """
    with one_blas_thread():
        sample = _sample(rows, _most_rows(rows), rotate=rotate, metric=metric)
        if major is None:
            views, grouped = _spread(sample.view, PLANNING_ROWS), _expects_cells(rows, cells)
            major = choose_major(views, len(rows), metric, grouped=grouped)
        return _encode(sample, rows, major, metric)


def plan_encoding(rows: Float32Array, metric: str, *, cells: bool) -> Encoding | None:
    """The encoding for plain ``rows`` ``(n, d)``; None if a flat scan is expected to be faster.

    Few entries need none. For others the plan is made on a small sample, before most of the work is
    done.
    """
    n, d = rows.shape
    most = _most_rows(rows)
    if n < LEAST_PLANNED and n * d <= FEW_VALUES:
        return None
    with one_blas_thread():
        if n >= LEAST_PLANNED and d <= TRIAL_DIMS:
            trial = _sample(rows, min(TRIAL_ROWS, most), rotate=True, metric=metric)
            if _prefers_flat(trial, n, metric):
                return None
        sample = _sample(rows, most, rotate=True, metric=metric)
        views, grouped = _spread(sample.view, PLANNING_ROWS), _expects_cells(rows, cells)
        major, survivors = plan_major(views, n, metric, grouped=grouped)
        doubtful = n >= LEAST_PLANNED and d > TRIAL_DIMS and survivors > DOUBTFUL
        if doubtful and _prefers_flat(sample, n, metric):
            return None
        return _encode(sample, rows, major, metric)


def _prefers_flat(sample: _Sample, entries: int, metric: str) -> bool:
    """The plan, made with at most TRIAL_ROWS of a sample."""
    chosen = _spread(np.arange(len(sample.rows)), TRIAL_ROWS)
    trial = _Sample(sample.rows[chosen], sample.rotation, sample.view[chosen])
    core = CoreIndex(trial.rows.shape[1], metric, "cascade", 0.0, False)
    major = choose_major(trial.view, entries, metric)
    core.set_encoding(_encode(trial, trial.rows, major, metric))
    fill(core, np.arange(len(chosen)), trial.rows)
    return prefers_flat(core, trial.rows)


def _expects_cells(rows: Float32Array, cells: bool) -> bool:
    return cells and len(rows) >= LEAST_GROUPED


def _most_rows(rows: Float32Array) -> int:
    return max(1, SAMPLE_VALUES // int(rows.shape[1]))


def _encode(sample: _Sample, rows: Float32Array, major: int, metric: str) -> Encoding:
    headroom = 1.0 if len(sample.rows) == len(rows) else HEADROOM
    view, rotation, lift = sample.view, sample.rotation, NO_LIFT
    if metric == "l2":
        lift = choose_lift(rows, view[:, :major])
        view = np.insert(view, major, _lifts(sample.rows, lift), axis=1)
    matrix, error = (None, 0.0) if rotation is None else (rotation.matrix, rotation.error)
    d = sample.rows.shape[1]
    return Encoding.choose(d, major, metric, view, headroom, matrix, error, lift)


def choose_lift(rows: Float32Array, majors: Float64Array) -> Lift:
    """Centre, weight and base norm of the dimension that turns distances into inner products.

    The lift of an entry is ``(centre - |x|**2) / weight``: the weight makes it about as large as
    the other dimensions of the major, so that one step serves all. It is chosen for all ``rows``,
    not for the sample that ``majors`` are of: one entry whose lift has no code loosens the bounds
    of its tile, and those of all cones.
    """
    squares = _squares(rows)
    low, high = float(squares.min()), float(squares.max())
    spread = max((high - low) / 2, LEAST_SPREAD * high)
    weight = spread / (float(np.abs(majors).max()) or 1.0)
    return (low + high) / 2, weight or 1.0, float(np.sqrt(high)) or 1.0


def _lifts(rows: Float32Array, lift: Lift) -> Float64Array:
    centre, weight, _ = lift
    lifts: Float64Array = (centre - _squares(rows)) / weight
    return lifts


def _squares(rows: Float32Array) -> Float64Array:
    """The squared norms of the rows; part by part, since float64 takes twice their memory."""
    parts = [np.square(part.astype(np.float64)).sum(axis=1) for part in _parts(rows, PART_ROWS)]
    return np.concatenate(parts)


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

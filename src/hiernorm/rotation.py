"""The lossless rotation of plain vectors: fitted on the data, with its own error measured.

Codes and bounds live in the rotated space, canonical scores in the original one. With R as stored
(float32, not quite orthogonal) and ``E = R^T R - I``,

    q.x = (R q).(R x) - q^T E x,    so    |q.x - (R q).(R x)| <= |E| |q| |x|.

The rounding of ``R x`` in float64 is at most ``d * 2**-52 * sqrt(d) * |x|`` whatever the order of
summation and the rounding mode. Both are part of :attr:`Rotation.error`, which every bound adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array
from hiernorm.threads import one_blas_thread

SCAN_NS_PER_BYTE = 0.01
"""Cost of one byte of major codes in the scan: between a single query, which reads it from a cache
(80 GB/s), and four queries of a batch that share it."""
SURVIVOR_NS = 20.0
"""Cost of an entry that the major does not rule out: cache lines from memory, and its bounds."""
GROUPED_SURVIVOR_NS = 2.5
"""The same in cells, where survivors lie side by side, and more for each dimension; measured."""
GROUPED_SURVIVOR_NS_PER_DIM = 0.02
CODING_ERROR = 0.01
"""What the 8-bit codes add to a bound, as a share of |q| |x|; used to choose the major."""
NEIGHBOUR = 10
"""The neighbour whose score is the threshold when the size of the major is chosen."""
PROBES = 128
"""Entries of the sample that serve as queries when the size of the major is chosen."""


@dataclass(frozen=True)
class Rotation:
    """A matrix whose rows are the axes of the rotated space, most energy first."""

    matrix: Float32Array
    error: float

    def apply(self, rows: Float32Array) -> Float64Array:
        """The rotated ``rows`` ``(n, d)``."""
        with one_blas_thread():
            view: Float64Array = rows.astype(np.float64) @ self.matrix.astype(np.float64).T
        return view

    def leading(self, rows: Float32Array, dims: int) -> Float32Array:
        """The first ``dims`` of the rotated ``rows``, ``(n, dims)``, kept within float32."""
        with one_blas_thread():
            view = rows.astype(np.float64) @ self.matrix[:dims].astype(np.float64).T
        most = np.finfo(np.float32).max
        return np.ascontiguousarray(np.clip(view, -most, most), dtype=np.float32)


def unit_rows(view: Float64Array) -> Float64Array:
    """The rows divided by their norms; rows that were flushed to zero stay zero."""
    norms = np.sqrt(np.square(view).sum(axis=1, keepdims=True))
    unit: Float64Array = view / np.where(norms > 0, norms, 1.0)
    return unit


def fit_rotation(sample: Float32Array) -> Rotation:
    """Uncentred PCA of ``sample`` ``(n, d)``: eigenvectors of the second moment.

    Examples
    --------
    >>> import numpy as np
    >>> rotation = fit_rotation(np.float32([[1, 1], [2, 2], [1, 1.1]]))
    >>> abs(rotation.matrix[0]).round(1)
    array([0.7, 0.7], dtype=float32)
    """
    rows = sample.astype(np.float64)
    largest = np.abs(rows).max(initial=0.0)
    if largest > 0:
        rows /= largest
    _, axes = np.linalg.eigh(rows.T @ rows)
    matrix = np.ascontiguousarray(axes[:, ::-1].T.astype(np.float32))
    return Rotation(matrix, _error_of(matrix))


def _error_of(matrix: Float32Array) -> float:
    d = len(matrix)
    exact = matrix.astype(np.float64)
    deviation = float(np.linalg.norm(exact.T @ exact - np.eye(d)))
    rounding_of_deviation = d * d * 2.0**-52
    rounding_of_view = d * 2.0**-52 * float(np.sqrt(d))
    return 1.01 * (deviation + rounding_of_deviation + 4 * rounding_of_view)


def choose_major(
    views: Float64Array, entries: int, metric: str = "ip", *, grouped: bool = False
) -> int:
    """The size of the major with the least expected time per entry and query.

    Some entries of the sample ``views`` ``(n, d)`` serve as queries, and their tenth neighbour sets
    the threshold: real queries are farther from the data than the data from itself. More dimensions
    mean more bytes to scan and fewer survivors to refine, which cost less where entries are
    ``grouped`` into cells. The order of distances is that of ``q.x - |x|**2 / 2``.
    """
    return plan_major(views, entries, metric, grouped=grouped)[0]


def plan_major(
    views: Float64Array, entries: int, metric: str, *, grouped: bool
) -> tuple[int, float]:
    """The size of the major as :func:`choose_major` chooses it, and the share that survives it."""
    n, d = views.shape
    if n < 8 or entries < 8:
        return max(1, min(15, int(d) - 1)), 1.0
    chosen = np.linspace(0, n - 1, min(PROBES, n // 2)).astype(np.int64)
    probes = views[chosen]
    energy = np.square(views)
    norms = np.sqrt(energy.sum(axis=1))
    offsets = np.square(norms) / 2 if metric == "l2" else 0.0
    scores = probes @ views.T - offsets
    scores[np.arange(len(chosen)), chosen] = -np.inf
    place = n - min(NEIGHBOUR, n // 2)
    thresholds = np.partition(scores, place, axis=1)[:, place, np.newaxis]
    coding_error = CODING_ERROR * np.outer(norms[chosen], norms)

    survivor_ns = SURVIVOR_NS
    if grouped:
        survivor_ns = GROUPED_SURVIVOR_NS + GROUPED_SURVIVOR_NS_PER_DIM * d
    best = (np.inf, 1, 1.0)
    for major in _majors_to_try(d):
        tails = np.sqrt(energy[:, major:].sum(axis=1))
        bounds = probes[:, :major] @ views[:, :major].T - offsets + np.outer(tails[chosen], tails)
        survivors = float((bounds + coding_error >= thresholds).mean())
        slots = -(-(major + 1) // 4) * 4
        best = min(best, (slots * SCAN_NS_PER_BYTE + survivors * survivor_ns, major, survivors))
    return best[1:]


def _majors_to_try(d: int) -> list[int]:
    """Sizes that, with the slot for the tail norm, fill whole groups of four."""
    sizes = [*range(3, 32, 4), *range(39, 64, 8), *range(79, 257, 16)]
    return [size for size in sizes if size < d] or [d - 1]

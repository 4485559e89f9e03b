"""The nearest rows of two sets in both directions, in one pass over all pairs.

Sets of some thousand rows need no index: a matrix product in tiles, ranked while it is in the
cache, costs less than the fit of an encoding. The core proves for each row that rounding cannot
have changed its nearest rows. The few rows without proof are searched in a flat index.
"""

from __future__ import annotations

from typing import NamedTuple

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.index import Index
from hiernorm.settings import Metric
from hiernorm.threads import thread_count

PLAIN_PAIRS = 100_000_000
"""Pairs of plain vectors up to which one pass over all of them is faster than an index."""
HN_PAIRS = 2_000_000
"""The same for HN vectors, whose index needs no rotation and reads less."""


class Nearest(NamedTuple):
    """Rows of the other set, best first, and their canonical scores: ``(n, k)`` each."""

    ids: Int64Array
    scores: Float64Array


def nearest_rows(
    a: Float32Array,
    b: Float32Array,
    k: int,
    metric: Metric,
    *,
    both: bool,
    threads: int | None = None,
) -> tuple[Nearest, Nearest]:
    """The ``k`` (1 or 2) nearest rows of ``b`` for each row of ``a``, and the other way round.

    The second is empty unless ``both`` directions are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.float32([[1, 0], [0, 1]]), np.float32([[0, 1], [0.6, 0.8], [0.8, 0.6]])
    >>> there, back = nearest_rows(a, b, 1, "ip", both=True)
    >>> there.ids.tolist(), back.ids.tolist()
    ([[2], [0]], [[1], [1], [0]])
    """
    there, back = _core.match_rows(a, b, metric, k, both, thread_count(threads))
    return _proved(there, a, b, metric, threads), _proved(back, b, a, metric, threads)


def _proved(
    nearest: _core._Nearest,
    queries: Float32Array,
    rows: Float32Array,
    metric: Metric,
    threads: int | None,
) -> Nearest:
    """Search the rows without proof: neighbours as near as each other, numbers near the limits."""
    ids, scores, proved = nearest
    if not proved.all():
        index = Index(rows.shape[1], metric=metric, engine="flat", threads=threads)
        index.add(rows)
        ids[~proved], scores[~proved] = index.search(queries[~proved], ids.shape[1])
    return Nearest(ids, scores)

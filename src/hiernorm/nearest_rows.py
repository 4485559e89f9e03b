"""The nearest rows of two sets in both directions, in one pass over all pairs.

Sets of some thousand rows need no index: a matrix product in tiles, ranked while it is in the
cache, costs less than the fit of an encoding. Nor do larger sets whose codes rule out too little.
The core proves for each row that rounding cannot have changed its nearest rows. The few rows
without proof are searched in a flat index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.certificate import STEPS, read_stats
from hiernorm.index import Index
from hiernorm.settings import EXACT, Metric
from hiernorm.threads import thread_count

PLAIN_PAIRS = 250_000_000
"""Pairs of plain vectors up to which one pass is faster than an index, for each direction: the pass
ranks both at once."""
HN_PAIRS = 1_000_000
"""The same for HN vectors, whose index needs no rotation and reads less."""
PROBES = 64
"""Rows that are searched to know whether an index is faster than the pass."""
PAIR_NS_PER_DIM = 0.0096
"""Time of one dimension of a pair in the pass, in nanoseconds; measured, as what follows."""
SLOT_NS = 0.006
"""Time of one byte of codes, in a batch that shares them."""
SURVIVOR_NS = 27.0
"""Time of an entry that the scan does not rule out."""


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


def prefers_pass(index: Index, queries: Float32Array, k: int, directions: int) -> bool:
    """Whether one pass over all pairs is expected to be faster than searches in ``index``.

    Counts of a few searches decide, not times. Answers never depend on it.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> rows = np.eye(128, dtype=np.float32)  # all are equally far: no code rules out any
    >>> index = hiernorm.Index(128, major=15)
    >>> index.add(rows)
    128
    >>> prefers_pass(index, rows + rows[::-1], 2, directions=2)
    True
    """
    encoding = index._core.encoding()
    if encoding is None:
        return True
    probes = queries[np.linspace(0, len(queries) - 1, PROBES).astype(np.int64)]
    work, _ = read_stats(index._core.search(probes, k, EXACT, 1, 0)[2])
    share = work[:, STEPS.index("sifted")].mean() / len(index)
    index_ns = directions * ((encoding.major + 1) * SLOT_NS + share * SURVIVOR_NS)
    return bool(PAIR_NS_PER_DIM * queries.shape[1] < index_ns)


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

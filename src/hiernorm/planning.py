"""The plan for plain vectors: whether codes pay, or every row is better read at once.

Codes pay where they rule most entries out. Where they do not, the cascade reads most rows after
their codes, and the flat scan, which reads rows in order and shares them between queries, is
faster. The plan is made by searching a sample and counting. Once an index is filled, a few searches
tell which requests are scanned flat all the same. Work is counted, not timed: every machine makes
the same plan. Answers never depend on it.
"""

from __future__ import annotations

import math

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array
from hiernorm.certificate import STEPS, read_stats
from hiernorm.rotation import PROBES
from hiernorm.settings import EXACT

SCAN_NS_PER_SLOT = 0.03
"""Time of one byte of codes in the scan of a batch, in nanoseconds; measured, as what follows."""
SURVIVOR_NS = 25.0
"""Time of an entry that the scan does not rule out, and more for each of its dimensions."""
SURVIVOR_NS_PER_DIM = 0.16
FLAT_NS_PER_DIM = 0.1
"""Time of one dimension of an entry in a flat scan; between those of single queries and batches."""

TRIAL_HITS = 5
"""Of a trial: a row that serves as a query finds itself first."""
FLAT_HITS = tuple(4**i for i in range(6))
"""Numbers of hits for which the plan says when to scan flat; it is made for each."""
FLAT_PROBES = 16
"""Entries that serve as queries when the requests for the flat scan are chosen."""
ENTRIES_PER_HIT = 16
"""So many entries for each hit are searched to choose them, or no search is made."""
BATCH_SCAN_NS_PER_SLOT = 0.008
"""Time of the cascade in a batch, measured over vectors of 128 to 1,536 dimensions: of a byte of
codes, of an entry that is sifted (and more for each dimension), of a dimension of the minor of an
entry that is tightened, and of a dimension of a row that is settled."""
SIFTED_NS, SIFTED_NS_PER_DIM = 16.4, 0.025
TIGHTENED_NS_PER_DIM = 0.064
SETTLED_NS_PER_DIM = 0.35
ALONE = 1.4
"""Time of a query alone, relative to one in a batch, where many entries survive the scan."""
FLAT_ALONE_NS_PER_DIM = 0.125
"""Time of a dimension of an entry in the flat scan of one query, which memory bounds."""
FLAT_SHARED_NS_PER_DIM = 0.0125
"""The same in a batch: bytes take 0.0025, floats with AVX2 0.018. Counts must not depend on the
instruction set, so one plan serves both: where it says flat, bytes gain much and floats lose
little."""
PACKING_NS_PER_DIM = 0.33
"""Time to pack a dimension of an entry for a batch."""
LEAST_SHARED = 8
"""Queries from which on the flat scan packs rows."""
REACHED_NS, REACHED_NS_PER_DIM = 120.0, 0.25
"""Time of an entry that reaches the threshold of its time in the flat scan, and of those that only
seemed to."""


def prefers_flat(sample: _core.Index, rows: Float32Array) -> bool:
    """Whether a flat scan of such vectors is expected to be faster than the cascade.

    Parameters
    ----------
    sample
        A native index of ``rows``, which are a sample of the entries.
    rows
        ``(n, d)``.
    """
    encoding = sample.encoding()
    assert encoding is not None
    d = rows.shape[1]
    survivor_ns = SURVIVOR_NS + SURVIVOR_NS_PER_DIM * d
    scan_ns = (encoding.major + 1) * SCAN_NS_PER_SLOT
    cascade_ns = scan_ns + survivors(sample, rows) * survivor_ns
    return bool(FLAT_NS_PER_DIM * d < cascade_ns)


def survivors(sample: _core.Index, rows: Float32Array) -> float:
    """The share of ``rows`` that the scan does not rule out, where some of them are the queries."""
    n = len(rows)
    probes = rows[np.linspace(0, n - 1, min(PROBES, n)).astype(np.int64)]
    _, _, stats, _, _ = sample.search(probes, TRIAL_HITS, EXACT, 1, 0)
    work, _ = read_stats(stats)
    return float(work[:, STEPS.index("sifted")].mean() / n)


def plan_flat(core: _core.Index, rows: Float32Array) -> list[int]:
    """From how many queries in a group on the flat scan is expected to be faster; 0 is never.

    The elements are for about 1, 4, 16, ... hits, as :func:`hiernorm.reference.scans_flat` reads
    them. Some entries serve as queries: the first hit is the entry itself.

    Parameters
    ----------
    core
        A native index with codes that has no plan yet.
    rows
        ``(n, d)``: its entries.
    """
    n, d = rows.shape
    encoding = core.encoding()
    assert encoding is not None
    probes = rows[np.linspace(0, n - 1, min(FLAT_PROBES, n)).astype(np.int64)]
    plan: list[int] = []
    for hits in FLAT_HITS:
        if hits > n // ENTRIES_PER_HIT:
            break
        _, _, stats, _, _ = core.search(probes, hits + 1, EXACT, 1, 0)
        work, _ = read_stats(stats)
        shares = dict(zip(STEPS, (work.mean(axis=0) / n).tolist(), strict=True))
        cascade_ns = _cascade_ns(shares, d, encoding.major)
        reached = hits * (1 + math.log(n / hits)) / n  # as among entries in random order
        settle_ns = reached * (REACHED_NS + REACHED_NS_PER_DIM * d)
        plan.append(_least_queries(cascade_ns - settle_ns, d))
        if plan[-1] == 1:  # so it is for more hits
            break
    return plan if any(plan) else []


def _cascade_ns(shares: dict[str, float], d: int, major: int) -> float:
    """Time of an entry in the cascade of a batch, by the shares that its steps left."""
    scan = shares["scanned"] * (major + 1) * BATCH_SCAN_NS_PER_SLOT
    sift = shares["sifted"] * (SIFTED_NS + SIFTED_NS_PER_DIM * d)
    tighten = shares["tightened"] * TIGHTENED_NS_PER_DIM * (d - major)
    return scan + sift + tighten + shares["settled"] * SETTLED_NS_PER_DIM * d


def _least_queries(cascade_ns: float, d: int) -> int:
    """The number of queries for which the flat scan takes less time for an entry."""
    if FLAT_ALONE_NS_PER_DIM * d < ALONE * cascade_ns:
        return 1
    left = cascade_ns - FLAT_SHARED_NS_PER_DIM * d
    return 0 if left <= 0 else max(LEAST_SHARED, math.ceil(PACKING_NS_PER_DIM * d / left))

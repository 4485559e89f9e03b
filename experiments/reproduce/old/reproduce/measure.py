"""Measurements that several parts make, by the benchmark's own means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import hiernorm
from hiernorm.bench.cases import Case, Group, Point
from hiernorm.bench.measure import Timing, measure_group, ratios
from hiernorm.bench.methods import FaissFlat, Method, missing_peers
from hiernorm.bench.report import Report
from hiernorm.bench.run import CaseRun
from hiernorm.bench.run import Options as BenchOptions
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array
from hiernorm.reproduce.databases import Database
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Work

SINGLE = Group("single", k=1, threads=1)
"""How the paper searches: single queries, the nearest neighbour, one thread."""


class _Progress:
    """Passes on what the benchmark says; its advances are part of a run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def start(self, total: float) -> None:
        """Begin."""

    def advance(self, share: float) -> None:
        """Note that a part is done."""


def measure_case(work: Work, case: Case, data: Database, queries: int) -> Result:
    """Build, prove agreement, find recall and time the methods of a benchmark's case.

    ``queries`` is how many at most: as in the paper, or more where recall is told to a thousandth.

    Returns
    -------
    The rows of a benchmark's report, what the database consists of, and the Phase-2 shares.
    """
    size = work.options.size
    report = Report(machine={}, options={}, missing=missing_peers())
    run = CaseRun(
        case,
        BenchOptions(size.scale, threads=1, seed=work.options.seed),
        data.entries,
        data.queries[:queries],
        report,
        _Progress(work.say),
        groups=[SINGLE],
    )
    run.run()
    rows: dict[str, Any] = {
        name: [asdict(row) for row in getattr(report, name)]
        for name in ("measurements", "builds", "work")
    }
    built = (engine.index for engine in run.engines if engine.family == "paper")
    index = next(built, None)
    return {
        **rows,
        "missing": report.missing,
        "database": describe_database(data),
        "phase2": None if index is None else phase2_shares(index, data, queries),
    }


def measure_phase2(data: Database, point: Point, queries: int) -> Result:
    """Build an index for Algorithm 1 and measure :func:`phase2_shares`."""
    major, alpha = point
    index = hiernorm.Index(data.entries.shape[1], major=major, alpha=alpha, engine="paper")
    index.add(data.entries)
    return phase2_shares(index, data, queries)


def phase2_shares(index: hiernorm.Index, data: Database, queries: int) -> Result:
    """Mean shares of the entries that Algorithm 1 evaluates in full.

    ``matched``: of queries whose point the database shows; ``keypoints``: of any keypoints of
    photos that it has not, or None.
    """

    def share(rows: Float32Array) -> float | None:
        if not len(rows):
            return None
        return float(index.search(rows, 1, threads=1).certificate.phase2_share.mean())

    return {"matched": share(data.queries[:queries]), "keypoints": share(data.keypoints)}


def describe_database(data: Database) -> Result:
    """What the entries are."""
    return {"entries": len(data.entries), "own": data.own, "kinds": data.kinds}


def time_methods(work: Work, methods: Sequence[Method], data: Database) -> dict[str, Result]:
    """Time methods that are built already, FAISS flat beside them; keyed by their names."""
    flat = FaissFlat(import_extra("faiss", extra="bench"))
    flat.build(data.entries, work.options.seed)
    size = work.options.size
    timings = measure_group([flat, *methods], data.queries[: size.queries], SINGLE, size.scale)
    return {name: _summary(timings[flat.name], timing) for name, timing in timings.items()}


def _summary(flat: Timing, timing: Timing) -> Result:
    rates = ratios(flat, timing)
    return {
        "seconds_rounds": list(timing.rounds),
        "queries": timing.queries,
        "speedup": mean_ratio(flat.rounds, timing.rounds),
        "speedup_low": min(rates),
        "speedup_high": max(rates),
    }


def mean_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """How many times faster, by the times averaged over the runs in which both took part.

    Examples
    --------
    >>> mean_ratio([2.0, 4.0], [1.0, 1.0, 9.0])
    3.0
    """
    both = min(len(slow), len(fast))
    return sum(slow[:both]) / sum(fast[:both])

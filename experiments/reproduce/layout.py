"""Section 6: arrays of structures or structures of arrays, and Phase 2 in index or sorted order."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hiernorm.bench.cases import Point
from hiernorm.bench.conditions import hold
from hiernorm.reference import Float32Array
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work, slug

LAYOUT_POINTS: tuple[Point, ...] = ((16, 1 / 8), (8, 1 / 8))


def plan(work: Work) -> list[Run]:
    """One run per K, on the first test scene."""
    return [Run(slug(point), 40, partial(_measure, work, point)) for point in LAYOUT_POINTS]


def _measure(work: Work, point: Point) -> Result:
    size = work.options.size
    data = work.warehouse.build(work.options.tests[0], work.variant(point), size.entries)
    queries = data.queries[: size.queries]
    with hold(1, "single"):
        times = _time_scans(data.entries, queries, point, size.runs, size.seconds)
    orders = [_count_evaluated(data.entries, query, point) for query in queries]
    return {
        "entries": len(data.entries),
        "point": point,
        "seconds": times,
        "evaluated": {name: float(np.mean([o[name] for o in orders])) for name in orders[0]},
    }


def _time_scans(
    entries: Float32Array, queries: Float32Array, point: Point, runs: int, seconds: float
) -> dict[str, list[float]]:
    """Seconds per query of each step, run by run: one BLAS product does every scan."""
    major, alpha = point
    majors = np.ascontiguousarray(entries[:, :major])
    scores = {i: majors @ queries[i, :major] for i in range(len(queries))}
    best = {i: float(entries[int(s.argmax())] @ queries[i]) for i, s in scores.items()}
    steps: dict[str, Callable[[int], Any]] = {
        "brute force": lambda i: entries @ queries[i],
        "majors, AoS": lambda i: entries[:, :major] @ queries[i, :major],
        "majors, SoA": lambda i: majors @ queries[i, :major],
        "skip test in index order": lambda i: np.flatnonzero(scores[i] + alpha > best[i]),
        "sort of the scores": lambda i: np.argsort(-scores[i]),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    number = 0
    for _ in range(runs):
        for name, step in steps.items():
            step(number % len(queries))
            start, done = time.perf_counter(), 0
            while done == 0 or time.perf_counter() - start < seconds:
                step((number + done) % len(queries))
                done += 1
            times[name].append((time.perf_counter() - start) / done)
        number += done
    return times


def _count_evaluated(entries: Float32Array, query: Float32Array, point: Point) -> dict[str, int]:
    """How many entries Phase 2 evaluates in each order, Algorithm 1's rule applied to all at once.

    What is skipped never exceeds the best so far, so the running maximum over all entries is that
    over the evaluated ones.
    """
    major, alpha = point
    full = (entries @ query).astype(np.float64)
    scores = (entries[:, :major] @ query[:major]).astype(np.float64)
    first = full[int(scores.argmax())]
    counts = {}
    for name, order in (("index", np.arange(len(full))), ("sorted", np.argsort(-scores))):
        before = np.maximum.accumulate(np.concatenate([[first], full[order][:-1]]))
        counts[name] = int((scores[order] + alpha > before).sum())
    return counts


PART = Part("layout", "Section 6: memory layout, scan order, FLOP and bandwidth model", plan)

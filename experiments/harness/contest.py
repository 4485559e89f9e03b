"""One database searched by all: our indexes, exact peers, and opponents that are tuned first.

Every other query chooses the opponents' settings; the others are timed. Our answers must be those
of exhaustive search, or the run stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.harness.comparison import DisagreementError
from experiments.harness.conditions import Group, hold
from experiments.harness.methods import Hiernorm, Method, flat_method, panorama_methods
from experiments.harness.opponents import (
    Judge,
    build_all,
    describe_choices,
    graph_opponents,
    list_opponents,
    tune,
)
from experiments.harness.structures import PeerMetric
from experiments.harness.timing import Effort, measure_group
from hiernorm.reference import Float32Array, Int64Array

VERIFIED = 20
"""Queries whose answers are compared with canonical exhaustive search."""


@dataclass(frozen=True)
class Peers:
    """Who takes part beside our indexes and FAISS flat."""

    panorama: bool = True
    graphs: bool = True
    lists: bool = False
    folder: Path | None = None
    """Keeps graphs for the next run."""

    def make(self, dim: int, metric: PeerMetric) -> list[Method]:
        """The methods, FAISS flat first."""
        methods: list[Method] = [flat_method(metric)]
        if self.panorama:
            methods += panorama_methods(dim, metric)
        if self.graphs:
            methods += graph_opponents(metric, folder=self.folder)
        if self.lists:
            methods += list_opponents(metric)
        return methods


def hold_contest(
    database: Float32Array,
    queries: Float32Array,
    own: Sequence[Hiernorm],
    peers: Peers,
    groups: Sequence[Group],
    effort: Effort,
    metric: PeerMetric = "ip",
    seed: int = 0,
) -> dict[str, Any]:
    """Build, check, tune and time; return what a record keeps.

    Parameters
    ----------
    database, queries
        Vectors ``(n, d)`` and ``(m, d)``, of unit length where a cosine is meant.
    own
        Our indexes; the first gives the true answer, after it was verified.
    peers, groups, effort, seed
        Who else takes part, what is timed, for how long, and the seed of graphs and lists.
    metric
        Of the peers; ours have theirs already.
    """
    methods: list[Method] = [*peers.make(database.shape[1], metric), *own]
    build_seconds = build_all(methods, database, seed)
    choosing, timed = queries[::2], queries[1::2]
    counts = sorted({group.k for group in groups})
    most = min(max(counts), len(database))
    tune(methods, Judge(database, choosing, _true(own, choosing, most), metric), choosing, counts)
    truth = _true(own, timed, most)
    judge = Judge(database, timed, truth, metric)
    rows = []
    for group in groups:
        timings = measure_group(methods, timed, group, effort)
        with hold(group.threads, group.manner):
            few = {name: timed[: _affordable(timing.median)] for name, timing in timings.items()}
            ids = {method.name: method.prepare(group)(few[method.name]) for method in methods}
        for method in own:
            if not np.array_equal(ids[method.name], truth[: len(ids[method.name]), : group.k]):
                raise DisagreementError(f"{method.name} differs from the truth, {group.name}")
        found = {
            method.name: {
                "microseconds": 1e6 * timings[method.name].median,
                "rounds": [1e6 * seconds for seconds in timings[method.name].rounds],
                "recall": judge.recall(ids[method.name], group.k),
                "family": method.family,
            }
            for method in methods
        }
        rows.append({**asdict(group), "methods": found})
    return {
        "n": len(database),
        "dim": database.shape[1],
        "metric": metric,
        "queries": {"chosen_on": len(choosing), "timed": len(timed)},
        "build_seconds": build_seconds,
        "bytes": {method.name: method.nbytes() for method in methods},
        "choices": describe_choices(methods),
        "majors": {method.name: method.index.major for method in own},
        "groups": rows,
        "work": {
            f"k={k}": {method.name: mean_work(method, timed, k) for method in own} for k in counts
        },
    }


def mean_work(method: Hiernorm, queries: Float32Array, k: int) -> dict[str, float]:
    """Entries that each step of a single search leaves, means over the queries."""
    work = method.hits(queries, Group("single", k, 1)).certificate.work
    return {step: float(counts.mean()) for step, counts in work.items()}


def _true(own: Sequence[Hiernorm], queries: Float32Array, k: int) -> Int64Array:
    """Ids of the nearest; some of the answers are verified by exhaustive search."""
    index = own[0].index
    hits = index.search(queries, k)
    few = queries[:VERIFIED]
    if not index.verify(few, index.search(few, k)).ok:
        raise DisagreementError(f"{own[0].name} differs from exhaustive search")
    return hits.ids


def _affordable(seconds: float, most: float = 3.0) -> int:
    """Queries that take three seconds; at least 16."""
    return max(16, int(most / seconds))

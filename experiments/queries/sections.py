"""The sections of the study: each builds its indexes and times them in interleaved rounds.

Vectors are synthetic, HN, of 128 dimensions. A time is the median of the rounds, in microseconds
per query. In a round every way of searching has its turn, with the same queries.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import hiernorm
from experiments.harness.conditions import hold, import_optional
from experiments.harness.points import RECOMMENDED
from hiernorm import synthetic
from hiernorm.reference import Float32Array

DIM = 128
POINTS = ((8, 1 / 32), RECOMMENDED, (32, 1 / 8))
Rows = list[dict[str, Any]]
Search = Callable[[Float32Array], Any]


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    sizes: tuple[int, ...] = (100, 1_000, 5_000, 30_000, 99_000, 500_000, 1_000_000)
    groups: tuple[int, ...] = (1, 2, 4, 16, 64, 256, 1_024)
    middle: tuple[int, ...] = (30_000, 99_000)
    large: int = 1_000_000
    queries: int = 1_024
    rounds: int = 5
    seed: int = 0


SMOKE = Scale((100, 600), (1, 2, 16), (600,), 600, queries=32, rounds=2)


def measure_calls(scale: Scale) -> Rows:
    """A call with one query over one entry, from the call to ids and scores: the fixed cost."""
    database, queries = _draw(1, scale, RECOMMENDED)
    index = _index(database, RECOMMENDED)

    def hiernorm_call(query: Float32Array) -> None:
        _, _ = index.search(query, 1, threads=1)

    ways: dict[str, Search] = {"hiernorm": hiernorm_call}
    hnswlib, faiss = import_optional("hnswlib"), import_optional("faiss")
    if hnswlib is not None:
        graph = hnswlib.Index("ip", DIM)
        graph.init_index(1, M=16, ef_construction=200)
        graph.add_items(database)
        ways["hnswlib"] = lambda query: graph.knn_query(query, 1, num_threads=1)
    if faiss is not None:
        flat = faiss.IndexFlatIP(DIM)
        flat.add(database)
        ways["FAISS IndexFlatIP"] = lambda query: flat.search(query, 1)
    with hold(1, "calls"):
        times = _take_turns(ways, _parts(queries, 1), scale.rounds, repeats=20)
    return [{"method": name, "us": us} for name, us in times.items()]


def measure_groups(scale: Scale) -> Rows:
    """Calls with groups of queries: no group may cost more per query than queries one by one."""
    rows = []
    for entries in scale.sizes:
        database, queries = _draw(entries, scale, RECOMMENDED)
        index = _index(database, RECOMMENDED)

        def one_by_one(part: Float32Array, index: hiernorm.Index = index) -> Any:
            return index.search(part, 1, threads=1, batch_size=1)

        def together(part: Float32Array, index: hiernorm.Index = index) -> Any:
            return index.search(part, 1, threads=1)

        for group in scale.groups:
            parts = _parts(queries, group)
            ways: dict[str, Search] = {"one_by_one": one_by_one, "together": together}
            times = _take_turns(ways, parts, scale.rounds)
            rows.append({"entries": entries, "group": group, **times})
    return rows


def measure_cells(scale: Scale) -> Rows:
    """The planner's choice beside no cells and cells always, alone and in a batch."""
    rows = []
    for major, alpha in POINTS:
        for entries in scale.middle:
            database, queries = _draw(entries, scale, (major, alpha))
            built = {
                name: _index(database, (major, alpha), cells)
                for name, cells in (("chosen", None), ("never", False), ("always", True))
            }
            for group in (1, 256):
                ways = {name: _searcher(index, 1, group) for name, index in built.items()}
                times = _take_turns(ways, _parts(queries, 256), scale.rounds)
                rows.append({"major": major, "entries": entries, "group": group, **times})
    return rows


def measure_hits(scale: Scale) -> Rows:
    """Ten hits beside one."""
    rows = []
    for entries in scale.middle:
        database, queries = _draw(entries, scale, RECOMMENDED)
        index = _index(database, RECOMMENDED)
        for group in (1, 256):
            ways = {f"k{k}": _searcher(index, k, group) for k in (1, 10)}
            times = _take_turns(ways, _parts(queries, 256), scale.rounds)
            rows.append({"entries": entries, "group": group, **times})
    return rows


def measure_threads(scale: Scale) -> Rows:
    """Single queries over a large index, by one thread and by two: the same bits."""
    database, queries = _draw(scale.large, scale, RECOMMENDED)
    rows = []
    for cells in (True, False):
        index = _index(database, RECOMMENDED, cells)

        def search(part: Float32Array, threads: int, index: hiernorm.Index = index) -> Any:
            return index.search(part, 10, threads=threads)

        parts = _parts(queries[:64], 1)
        for part in parts[:16]:
            one, two = search(part, 1), search(part, 2)
            if one.ids.tobytes() + one.scores.tobytes() != two.ids.tobytes() + two.scores.tobytes():
                raise RuntimeError("two threads gave another answer than one")
        ways: dict[str, Search] = {
            "one": lambda part, search=search: search(part, 1),  # type: ignore[misc]
            "two": lambda part, search=search: search(part, 2),  # type: ignore[misc]
        }
        times = _take_turns(ways, parts, scale.rounds)
        rows.append({"entries": scale.large, "cells": cells, **times})
    return rows


SECTIONS = {
    "calls": measure_calls,
    "groups": measure_groups,
    "cells": measure_cells,
    "hits": measure_hits,
    "threads": measure_threads,
}


def _draw(
    entries: int, scale: Scale, point: tuple[int, float]
) -> tuple[Float32Array, Float32Array]:
    major, alpha = point
    data = synthetic.hierarchical(
        entries, scale.queries, dim=DIM, major=major, alpha=alpha, seed=scale.seed
    )
    return data.database, data.queries


def _index(
    database: Float32Array, point: tuple[int, float], cells: bool | None = None
) -> hiernorm.Index:
    index = hiernorm.Index(DIM, major=point[0], alpha=point[1], cells=cells)
    index.add(database)
    return index


def _searcher(index: hiernorm.Index, k: int, group: int) -> Search:
    batch_size = 1 if group == 1 else None
    return lambda part: index.search(part, k, threads=1, batch_size=batch_size)


def _parts(queries: Float32Array, group: int) -> list[Float32Array]:
    starts = range(0, len(queries), group)
    return [np.ascontiguousarray(queries[start : start + group]) for start in starts]


def _take_turns(
    ways: dict[str, Search], parts: Sequence[Float32Array], rounds: int, repeats: int = 1
) -> dict[str, float]:
    """Microseconds per query of each way: the median of the rounds."""
    queries = repeats * sum(len(part) for part in parts)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    for number in range(rounds + 1):
        for name, search in ways.items():
            gc.disable()
            try:
                start = time.perf_counter()
                for _ in range(repeats):
                    for part in parts:
                        search(part)
                elapsed = time.perf_counter() - start
            finally:
                gc.enable()
            if number > 0:  # the first round warms caches up
                seconds[name].append(elapsed)
    return {name: 1e6 * median(values) / queries for name, values in seconds.items()}

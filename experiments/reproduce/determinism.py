"""Section 7, determinism: answers over runs, threads, orders and kernels; graphs built again."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import hiernorm
from hiernorm import _core
from hiernorm.bench.cases import RECOMMENDED
from hiernorm.bench.conditions import import_optional
from hiernorm.bench.methods import HNSW_EF_CONSTRUCTION, HNSW_LINKS
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.reproduce.databases import Database
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work

K = 10
THREADS = (1, 2, 4)
ORDERS = 3
EFS = (10, 50, 100)


def plan(work: Work) -> list[Run]:
    """One run for ours, one for the graphs, on the first test scene."""
    return [
        Run("ours", 40, partial(_search_ours, work)),
        Run("hnswlib", 120, partial(_search_graphs, work)),
    ]


def _build(work: Work) -> Database:
    variant = work.variant(RECOMMENDED)
    return work.warehouse.build(work.options.tests[0], variant, work.options.size.rebuild_entries)


def _orders(entries: int, seed: int) -> list[Int64Array]:
    """Orders of insertion: as it comes, backwards, and shuffled."""
    rng = np.random.default_rng([seed, 7])
    shuffled = [rng.permutation(entries) for _ in range(ORDERS - 2)]
    return [np.arange(entries), np.arange(entries)[::-1].copy(), *shuffled]


def _search_ours(work: Work) -> Result:
    """Count the answers that differ from the first in any id or score bit."""
    data = _build(work)
    before = hiernorm.isa()
    true: hiernorm.Hits | None = None
    conditions = []
    try:
        for number, order in enumerate(_orders(len(data.entries), work.options.seed)):
            index = _index(data.entries, order)
            for isa in hiernorm.available_isas():
                _core.use_isa(isa)
                for threads in THREADS:
                    for batch in (None, 1):
                        hits = index.search(data.queries, K, threads=threads, batch_size=batch)
                        true = true or hits
                        same = (hits.ids == true.ids) & (hits.scores == true.scores)
                        conditions.append(
                            {
                                "order": number,
                                "isa": isa,
                                "threads": threads,
                                "batch_size": batch,
                                "changed": int((~same.all(axis=1)).sum()),
                            }
                        )
    finally:
        _core.use_isa(before)
    return {"entries": len(data.entries), "queries": len(data.queries), "conditions": conditions}


def _index(entries: Float32Array, order: Int64Array) -> hiernorm.Index:
    major, alpha = RECOMMENDED
    index = hiernorm.Index(entries.shape[1], major=major, alpha=alpha)
    index.add(entries[order], ids=order)
    return index


def _search_graphs(work: Work) -> Result:
    """Build the graph with several threads and orders; count first answers that change."""
    hnswlib = import_optional("hnswlib")
    data = _build(work)
    counts: dict[str, Any] = {"entries": len(data.entries), "queries": len(data.queries)}
    if hnswlib is None:
        return {**counts, "missing": "hnswlib is not installed", "builds": []}
    true = _index(data.entries, np.arange(len(data.entries))).search(data.queries, 1).ids[:, 0]
    orders = _orders(len(data.entries), work.options.seed)
    plans = [(0, 1), (0, 1), *((0, t) for t in THREADS[1:]), *((o, 1) for o in range(1, ORDERS))]
    first: dict[int, Int64Array] = {}
    builds = []
    for number, (order, threads) in enumerate(plans):
        work.say(f"determinism: graph {number + 1} of {len(plans)}")
        graph = hnswlib.Index(space="ip", dim=data.entries.shape[1])
        graph.init_index(
            len(data.entries),
            M=HNSW_LINKS,
            ef_construction=HNSW_EF_CONSTRUCTION,
            random_seed=work.options.seed,
        )
        rows = orders[order]
        graph.add_items(data.entries[rows], rows, num_threads=threads)
        for ef in EFS:
            graph.set_ef(ef)
            found = graph.knn_query(data.queries, k=1, num_threads=1)[0][:, 0].astype(np.int64)
            first.setdefault(ef, found)
            builds.append(
                {
                    "order": order,
                    "threads": threads,
                    "ef": ef,
                    "changed": int((found != first[ef]).sum()),
                    "wrong": int((found != true).sum()),
                }
            )
    return {**counts, "builds": builds}


PART = Part("determinism", "Section 7: determinism, ours and hnswlib's", plan)

"""Section 7, determinism: orders, threads, kernels and graphs; future work: int8 and its ties."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import hiernorm
from experiments.harness.conditions import import_optional
from experiments.harness.methods import HNSW_EF_CONSTRUCTION, HNSW_LINKS
from experiments.harness.page import MISSING, Rows, Section, Text, percent
from experiments.harness.points import RECOMMENDED
from experiments.harness.records import Result
from experiments.reproduce.databases import Database
from experiments.reproduce.findings import Findings
from experiments.reproduce.work import Part, Run, Work
from hiernorm import _core
from hiernorm.reference import Float32Array, Int64Array

K = 10
THREADS = (1, 2, 4)
ORDERS = 3
EFS = (10, 50, 100)

LARGEST = 127
"""Of int8."""


def _plan_determinism(work: Work) -> list[Run]:
    """One run for ours, one for the graphs, on the first test scene."""
    return [
        Run("ours", 40, partial(_search_ours, work)),
        Run("hnswlib", 120, partial(_search_graphs, work)),
    ]


def _build(work: Work) -> Database:
    variant = work.variant(RECOMMENDED)
    return work.databases.build(work.options.tests[0], variant, work.options.size.rebuild_entries)


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


def _plan_fixed_point(work: Work) -> list[Run]:
    """One run per scene."""
    return [
        Run(scene, 30, partial(_measure_fixed_point, work, scene)) for scene in work.options.tests
    ]


def _measure_fixed_point(work: Work, name: str) -> Result:
    size = work.options.size
    data = work.databases.build(name, work.variant(RECOMMENDED), size.section_entries)
    shift = _choose_shift(data.entries)
    shuffled = np.random.default_rng([work.options.seed, 8]).permutation(len(data.entries))
    rows = {}
    answers = {}
    for kind, entries, queries in (
        ("float32", data.entries, data.queries),
        ("int8", _quantise(data.entries, shift), _quantise(data.queries, shift)),
    ):
        orders = np.arange(len(entries)), shuffled
        hits, again = (_index(entries, order).search(queries, K, threads=1) for order in orders)
        equal = hits.scores[:, 1:] == hits.scores[:, :-1]
        rows[kind] = {
            "first_tied": int(equal[:, 0].sum()),
            "ties": int(equal.sum()),
            "queries_with_ties": int(equal.any(axis=1).sum()),
            "changed_by_order": int((hits.ids != again.ids).any(axis=1).sum()),
            "duplicates": len(entries) - len(np.unique(entries, axis=0)),
        }
        answers[kind] = hits.ids[:, 0]
    return {
        "entries": len(data.entries),
        "queries": len(data.queries),
        "k": K,
        "shift": shift,
        "kinds": rows,
        "same_first": float((answers["float32"] == answers["int8"]).mean()),
    }


def _choose_shift(entries: Float32Array) -> int:
    """The power of two by which descriptors are multiplied: the largest that int8 can hold."""
    return int(np.floor(np.log2(LARGEST / float(np.abs(entries).max()))))


def _quantise(rows: Float32Array, shift: int) -> Float32Array:
    """Whole numbers from -127 to 127, kept as float32, which holds their products exactly."""
    steps: Float32Array = np.rint(rows * np.float32(2.0**shift))
    return np.clip(steps, -LARGEST, LARGEST)


DETERMINISM = Part("determinism", "Section 7: determinism, ours and hnswlib's", _plan_determinism)
FIXED_POINT = Part("fixed_point", "Future work: int8 descriptors and ties", _plan_fixed_point)


def determinism_blocks(findings: Findings) -> list[Text | Rows]:
    """Answers that changed."""
    rows: list[list[str]] = []
    ours = findings.get("determinism/ours")
    if ours is not None:
        conditions = ours["conditions"]
        isas = dict.fromkeys(c["isa"] for c in conditions)
        threads = dict.fromkeys(str(c["threads"]) for c in conditions)
        orders = len({c["order"] for c in conditions})
        what = f"{len(conditions)} searches: {orders} orders of insertion, {', '.join(isas)}, "
        what += f"{', '.join(threads)} threads, single and batched; k = 10, ids and score bits"
        changed = sum(c["changed"] for c in conditions)
        rows.append(["hiernorm", what, f"{changed} of {ours['queries']:,}", "0"])
    graphs = findings.get("determinism/hnswlib")
    for build in [] if graphs is None else summarise_builds(graphs):
        queries = f"{graphs['queries']:,}" if graphs else ""
        changed = f"{build['changed']} of {queries}"
        label = f"hnswlib, ef={build['ef']}"
        rows.append([label, build["what"], changed, str(build["wrong"])])
    text = (
        f"{findings.size['rebuild_entries']:,} entries of {findings.tests[0]}, K = 16, alpha = 1/8."
        " Changed: queries whose answer differs from that of the first build (for hnswlib the "
        "first answer only); wrong: first answers that are not the nearest neighbour; of several "
        "builds the worst."
    )
    head = ["index", "built and searched", "changed", "wrong"]
    return [Text(text), Rows(head, rows or [[MISSING] * 4])]


def summarise_builds(graphs: dict[str, Any]) -> list[dict[str, Any]]:
    """The worst build of each kind and ef: again, with more threads, in another order."""
    builds = graphs["builds"]
    kinds = {
        "again, all alike": [b for b in builds if b["order"] == 0 and b["threads"] == 1],
        "with 2 or 4 threads": [b for b in builds if b["threads"] > 1],
        "in another order": [b for b in builds if b["order"] > 0],
    }
    return [
        {
            "what": what,
            "ef": ef,
            "changed": max(b["changed"] for b in rows if b["ef"] == ef),
            "wrong": max(b["wrong"] for b in rows if b["ef"] == ef),
        }
        for what, rows in kinds.items()
        for ef in dict.fromkeys(b["ef"] for b in rows)
    ]


def fixed_point(findings: Findings) -> Section:
    """Ties of int8 descriptors."""
    rows = []
    for name in findings.tests:
        found = findings.get(f"fixed_point/{name}")
        for kind, row in {} if found is None else found["kinds"].items():
            asked = "" if found is None else f"{found['queries']:,}"
            cells = [name, kind, f"{row['first_tied']} of {asked}", str(row["queries_with_ties"])]
            cells += [str(row["ties"]), str(row["duplicates"]), str(row["changed_by_order"])]
            same = "" if found is None or kind == "float32" else percent(found["same_first"])
            rows.append([*cells, same])
    head = ["scene", "descriptors", "first place tied", "queries with ties", "ties in all"]
    head += ["equal entries", "answers changed by order", "same first as float32"]
    text = (
        f"HN descriptors (K = 16, alpha = 1/8, N = {findings.size['section_entries']:,}) times a "
        "power of two, rounded to int8; ties among the ten best, and the answers after adding the "
        "entries in another order. Ties go by id, so the order never matters."
    )
    return Section("Future work: fixed point", [Text(text), Rows(head, rows or [[MISSING] * 8])])

"""Growth with N: entries read and time per query, with cells and without, against the peers.

    python benchmarks/cells.py --features features.npy --queries queries.npy --out results/cells

`features` are plain descriptors (n, d), `queries` others that are not among them (features.py makes
both from photos). For each K and alpha they are turned by PCA of the features and normalised
hierarchically. Writes cells.json, after every size, and cells.png; every size is measured in rounds
in which each method has its turn.
"""

from __future__ import annotations

import argparse
import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from indexed import Indexed

import hiernorm
from hiernorm.bench.cases import FULL, QUICK, SMOKE, Group
from hiernorm.bench.conditions import import_optional
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.bench.measure import measure_group, recall
from hiernorm.bench.methods import FaissPanorama, Hnsw, HnswGraph, Method
from hiernorm.reference import Float32Array

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 4_000_000)
FOLLOWED = ((16, "1/8"), (8, "1/32"))
"""Points that are measured at every size; the first with hnswlib at every size that is allowed."""
POINTS = tuple((k, a) for k in (8, 16, 32) for a in ("0", "1/32", "1/16", "1/8", "1/4"))
"""The others are measured at COMPARED entries, with all peers, and at the largest size without."""
COMPARED = 100_000
EFS = (50, 100, 200, 500, 1000)
RECALL = 0.999
PLANNED = 99_000
"""Entries on which the planner is put beside both choices."""
SCALES = {"smoke": SMOKE, "quick": QUICK, "full": FULL}
SINGLE = Group(manner="single", k=1, threads=1)


def own_index(dim: int, point: tuple[int, float], cells: bool | None) -> Indexed:
    """Our cascade, with cells where they pay (None), without or always."""
    names = {None: "hiernorm", False: "hiernorm, no cells", True: "hiernorm, always cells"}
    major, alpha = point
    return Indexed(names[cells], hiernorm.Index(dim, major=major, alpha=alpha, cells=cells))


def turn(features: Float32Array, *others: Float32Array) -> list[Float32Array]:
    """Turn all by the principal directions of the first, largest first."""
    moment = features.T.astype(np.float64) @ features / len(features)
    directions = np.linalg.eigh(moment)[1][:, ::-1]
    return [(rows @ directions).astype(np.float32) for rows in (features, *others)]


def peers_of(n: int, point: tuple[int, float], options: argparse.Namespace) -> list[Method]:
    """List the peers that are installed; graphs take long to build."""
    faiss, hnswlib = import_optional("faiss"), import_optional("hnswlib")
    followed = [(major, float(Fraction(text))) for major, text in FOLLOWED]
    methods: list[Method] = []
    if hasattr(faiss, "IndexFlatIPPanorama") and (n <= COMPARED or point in followed):
        methods.append(FaissPanorama(faiss, 8))
    largest = options.largest_graph if point == followed[0] else COMPARED
    if hnswlib is not None and n <= min(largest, options.largest_graph):
        graph = HnswGraph(hnswlib)
        methods += [Hnsw(graph, ef) for ef in EFS]
    return methods


def measure_size(
    database: Float32Array,
    queries: Float32Array,
    point: tuple[int, float],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Build and time all methods on one database."""
    major, alpha = point
    own = [own_index(database.shape[1], point, cells) for cells in (None, False)]
    methods: list[Method] = [*own, *peers_of(len(database), point, options)]
    build_seconds: dict[str, float] = {}
    for method in methods:
        if method.index_name not in build_seconds:
            start = time.perf_counter()
            method.build(database, seed=0)
            build_seconds[method.index_name] = time.perf_counter() - start
    hits = own[0].index.search(queries, 1, batch_size=1)
    truth = own[0].index.verify(queries[:50], own[0].index.search(queries[:50], 1))
    if not truth.ok:
        raise SystemExit("the index disagrees with exhaustive search")
    recalls = {m.name: recall(m.prepare(SINGLE)(queries), hits.ids, 1) for m in methods}
    graphs = [m for m in methods if isinstance(m, Hnsw) and recalls[m.name] >= RECALL]
    timed = [m for m in methods if not isinstance(m, Hnsw)] + graphs[:1]
    timings = measure_group(timed, queries, SINGLE, SCALES[options.scale])
    return {
        "n": len(database),
        "major": major,
        "alpha": alpha,
        "scanned": float(hits.certificate.work["scanned"].mean()),
        "bytes": own[0].index.nbytes,
        "build_seconds": build_seconds,
        "recall": recalls,
        "microseconds": {name: 1e6 * t.median for name, t in timings.items()},
    }


def measure_planner(
    features: Float32Array, queries: Float32Array, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Time what the planner chose beside both choices, on data where cells hardly help."""
    random = np.random.default_rng(1)
    uniform = [random.standard_normal(x.shape, dtype=np.float32) for x in (features, queries)]
    cases = (
        ("uniform directions", uniform, 1 / 8, 1),
        ("alpha = 1/4", [features, queries], 1 / 4, 1),
        ("k = 1000", [features, queries], 1 / 8, 1000),
        ("alpha = 1/8", [features, queries], 1 / 8, 1),
    )
    rows = []
    for name, pair, alpha, k in cases:
        x, q = (hiernorm.normalize(part, 16, alpha) for part in pair)
        methods = [own_index(x.shape[1], (16, alpha), cells) for cells in (None, False, True)]
        for method in methods:
            method.build(x, seed=0)
        group = Group(manner="single", k=k, threads=1)
        timings = measure_group(methods, q, group, SCALES[options.scale])
        chosen, flat, cells = (1e6 * timings[m.name].median for m in methods)
        rows.append({"case": name, "n": len(x), "chosen": chosen, "flat": flat, "cells": cells})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def growth(rows: list[dict[str, Any]], value: Any) -> float | None:
    """Fit the exponent of N in what `value` gives, from 100,000 entries on."""
    kept = [(r["n"], value(r)) for r in rows if r["n"] >= 100_000 and value(r)]
    if len(kept) < 2:
        return None
    n, y = np.log(np.array(kept, dtype=float)).T
    return float(np.polyfit(n, y, 1)[0])


def draw(report: dict[str, Any], file: Path) -> None:
    """Draw time and entries read against N, of the points that every size was measured for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    times, read = figure.subplots(1, 2)
    for case in report["cases"]:
        rows = case["rows"]
        if (case["major"], case["alpha_text"]) not in FOLLOWED:
            continue
        label = f"K={case['major']}, alpha={case['alpha_text']}"
        n = [r["n"] for r in rows]
        (line,) = times.plot(n, [r["microseconds"]["hiernorm"] for r in rows], "o-", label=label)
        colour = line.get_color()
        flat = [r["microseconds"]["hiernorm, no cells"] for r in rows]
        times.plot(n, flat, ":", color=colour)
        graph = [(r["n"], v) for r in rows for k, v in r["microseconds"].items() if "hnsw" in k]
        if graph:
            times.plot(*zip(*graph, strict=True), "--", color=colour)
        read.plot(n, [r["scanned"] / r["n"] for r in rows], "o-", color=colour, label=label)
    times.set(xscale="log", yscale="log", xlabel="entries", ylabel="microseconds per query")
    times.set_title("solid: hiernorm, dotted: without cells, dashed: hnswlib at recall 0.999")
    times.title.set_fontsize(9)
    read.set(xscale="log", yscale="log", xlabel="entries", ylabel="share of the entries read")
    for axes in (times, read):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(file, dpi=150)


def sizes_of(point: tuple[int, str], features: int) -> list[int]:
    """Sizes at which a point is measured."""
    every = [n for n in SIZES if n < features] + [features]
    if point in FOLLOWED:
        return every
    return sorted({min(COMPARED, features), features})


def main() -> None:
    """Measure all sizes that the features allow."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/cells"))
    parser.add_argument("--scale", default="quick", choices=list(SCALES))
    parser.add_argument("--query-count", type=int, default=500)
    parser.add_argument("--largest-graph", type=int, default=1_000_000)
    parser.add_argument("--followed", action="store_true", help="only the points of every size")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    features, queries = turn(np.load(options.features), np.load(options.queries))
    queries = queries[: options.query_count]
    order = np.random.default_rng(0).permutation(len(features))
    watch = Bystanders()
    report: dict[str, Any] = {"machine": describe_machine(), "planner": [], "cases": []}

    def write() -> None:
        report["others_used"] = watch.share()
        (options.out / "cells.json").write_text(json.dumps(report, indent=2) + "\n")

    report["planner"] = measure_planner(features[np.sort(order[:PLANNED])], queries, options)
    others = () if options.followed else [point for point in POINTS if point not in FOLLOWED]
    for major, text in (*FOLLOWED, *others):
        alpha = float(Fraction(text))
        rows: list[dict[str, Any]] = []
        case = {"major": major, "alpha_text": text, "rows": rows, "growth": {}}
        report["cases"].append(case)
        q = hiernorm.normalize(queries, major, alpha)
        for n in sizes_of((major, text), len(features)):
            x = hiernorm.normalize(features[np.sort(order[:n])], major, alpha)
            rows.append(measure_size(x, q, (major, alpha), options))
            print(json.dumps(rows[-1]), flush=True)
            case["growth"] = {
                "time": growth(rows, lambda r: r["microseconds"]["hiernorm"]),
                "scanned": growth(rows, lambda r: r["scanned"]),
            }
            write()
    draw(report, options.out / "cells.png")


if __name__ == "__main__":
    main()

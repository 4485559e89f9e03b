"""Growth with N: entries read and time per query, with cells and without, against the peers.

`features` are plain descriptors (n, d), `queries` others that are not among them
(`python -m experiments.growth.features` makes both from photos). For each K and alpha they are
turned by PCA of the features and normalised hierarchically. Writes cells.json, after every size,
and cells.png; every size is measured in rounds in which each method has its turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from experiments.growth.picture import FOLLOWED, draw
from experiments.harness.command import (
    EXISTING_FILE,
    Experiment,
    graphs_option,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import SINGLE, Group
from experiments.harness.methods import Hiernorm, Method, panorama_methods
from experiments.harness.opponents import Judge, build_all, describe_choices, graph_opponents, tune
from experiments.harness.points import Point
from experiments.harness.records import Recorder, read_record
from experiments.harness.timing import EFFORTS, SMOKE, Effort, measure_group
from experiments.harness.vectors import sample_rows
from hiernorm.reference import Float32Array

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 4_000_000)
POINTS = tuple((k, a) for k in (8, 16, 32) for a in ("0", "1/32", "1/16", "1/8", "1/4"))
"""The others are measured at COMPARED entries, with all peers, and at the largest size without."""
COMPARED = 100_000
RECALL = 0.999
PLANNED = 99_000
"""Entries on which the planner is put beside both choices."""
PANORAMA = "Panorama, 8 levels"


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    effort: Effort
    largest_graph: int
    only_followed: bool
    graphs: Path | None = None


def own_method(point: Point, cells: bool | None) -> Hiernorm:
    """Our cascade, with cells where they pay (None), without or always."""
    names = {None: "hiernorm", False: "hiernorm, no cells", True: "hiernorm, always cells"}
    major, alpha = point
    return Hiernorm(names[cells], major=major, alpha=alpha, cells=cells)


def turn(features: Float32Array, *others: Float32Array) -> list[Float32Array]:
    """Turn all by the principal directions of the first, largest first."""
    moment = features.T.astype(np.float64) @ features / len(features)
    directions = np.linalg.eigh(moment)[1][:, ::-1]
    return [(rows @ directions).astype(np.float32) for rows in (features, *others)]


def peers_of(n: int, point: Point, extent: Extent) -> list[Method]:
    """List the peers that are installed; graphs take long to build."""
    followed = [(major, float(Fraction(text))) for major, text in FOLLOWED]
    methods: list[Method] = []
    if n <= COMPARED or point in followed:
        methods += [method for method in panorama_methods() if method.name == PANORAMA]
    if point in followed and n <= extent.largest_graph:
        methods += graph_opponents(recalls=(RECALL,), folder=extent.graphs)
    return methods


def measure_size(
    database: Float32Array,
    queries: Float32Array,
    point: Point,
    extent: Extent,
) -> dict[str, Any]:
    """Build and time all methods on one database.

    Every other query chooses the setting of hnswlib; the others are timed.
    """
    major, alpha = point
    own = [own_method(point, cells) for cells in (None, False)]
    methods: list[Method] = [*own, *peers_of(len(database), point, extent)]
    build_seconds = build_all(methods, database, seed=0)
    index = own[0].index
    if not index.verify(queries[:50], index.search(queries[:50], 1)).ok:
        raise SystemExit("the index disagrees with exhaustive search")
    choosing, timed = queries[::2], queries[1::2]
    tune(methods, Judge(database, choosing, index.search(choosing, 1).ids), choosing, (1,))
    hits = index.search(timed, 1, batch_size=1)
    judge = Judge(database, timed, hits.ids)
    recalls = {m.name: judge.recall(m.prepare(SINGLE)(timed), 1) for m in methods}
    timings = measure_group(methods, timed, SINGLE, extent.effort)
    return {
        "n": len(database),
        "major": major,
        "alpha": alpha,
        "scanned": float(hits.certificate.work["scanned"].mean()),
        "bytes": own[0].index.nbytes,
        "build_seconds": build_seconds,
        "recall": recalls,
        "choices": describe_choices(methods),
        "microseconds": {name: 1e6 * t.median for name, t in timings.items()},
    }


def measure_planner(
    features: Float32Array, queries: Float32Array, effort: Effort
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
        methods = [own_method((16, alpha), cells) for cells in (None, False, True)]
        for method in methods:
            method.build(x, seed=0)
        group = Group(manner="single", k=k, threads=1)
        timings = measure_group(methods, q, group, effort)
        chosen, flat, cells = (1e6 * timings[m.name].median for m in methods)
        rows.append({"case": name, "n": len(x), "chosen": chosen, "flat": flat, "cells": cells})
        click.echo(rows[-1])
    return rows


def growth(rows: list[dict[str, Any]], value: Any) -> float | None:
    """Fit the exponent of N in what `value` gives, from 100,000 entries on."""
    kept = [(r["n"], value(r)) for r in rows if r["n"] >= 100_000 and value(r)]
    if len(kept) < 2:
        return None
    n, y = np.log(np.array(kept, dtype=float)).T
    return float(np.polyfit(n, y, 1)[0])


def sizes_of(point: tuple[int, str], features: int) -> list[int]:
    """Sizes at which a point is measured."""
    every = [n for n in SIZES if n < features] + [features]
    if point in FOLLOWED:
        return every
    return sorted({min(COMPARED, features), features})


def study(
    features: Float32Array, queries: Float32Array, extent: Extent, recorder: Recorder, file: Path
) -> None:
    """Measure all sizes that the features allow; write after each."""
    order = np.random.default_rng(0).permutation(len(features))
    planned = features[np.sort(order[:PLANNED])]
    cases: list[dict[str, Any]] = []
    result = {"planner": measure_planner(planned, queries, extent.effort), "cases": cases}
    others = () if extent.only_followed else [point for point in POINTS if point not in FOLLOWED]
    for major, text in (*FOLLOWED, *others):
        alpha = float(Fraction(text))
        rows: list[dict[str, Any]] = []
        case: dict[str, Any] = {"major": major, "alpha_text": text, "rows": rows, "growth": {}}
        cases.append(case)
        q = hiernorm.normalize(queries, major, alpha)
        for n in sizes_of((major, text), len(features)):
            x = hiernorm.normalize(features[np.sort(order[:n])], major, alpha)
            rows.append(measure_size(x, q, (major, alpha), extent))
            click.echo(rows[-1])
            case["growth"] = {
                "time": growth(rows, lambda r: r["microseconds"]["hiernorm"]),
                "scanned": growth(rows, lambda r: r["scanned"]),
            }
            recorder.write(file, result)


@click.command("growth", cls=Experiment)
@click.option("--features", type=EXISTING_FILE, help="Plain descriptors (n, d) in a .npy file.")
@click.option("--queries", type=EXISTING_FILE, help="Others that are not among them.")
@click.option("--effort", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@click.option("--query-count", default=1000, show_default=True, help="Half of them are timed.")
@click.option("--largest-graph", default=1_000_000, show_default=True, help="Entries of hnswlib's.")
@graphs_option
@click.option("--followed", is_flag=True, help="Only the points of every size.")
@click.option("--render", is_flag=True, help="Draw the picture of --out again, no more.")
@seed_option
@smoke_option
@out_option
def main(
    features: Path | None,
    queries: Path | None,
    effort: str,
    query_count: int,
    largest_graph: int,
    graphs: Path | None,
    followed: bool,
    render: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure how entries read and time per query grow with the number of entries."""
    folder = results_folder("growth", out, smoke)
    file = folder / "cells.json"
    if not render:
        if features is None or queries is None:
            raise click.UsageError("give --features and --queries, or --render")
        extent = Extent(SMOKE if smoke else EFFORTS[effort], largest_graph, followed, graphs)
        recorder = Recorder("growth", seed, {"effort": effort, "query_count": query_count})
        x, q = turn(np.load(features), sample_rows(np.load(queries), query_count, seed))
        study(x, q, extent, recorder, file)
    draw(read_record(file).result, folder / "cells.png")


if __name__ == "__main__":
    main()

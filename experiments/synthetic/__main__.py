"""How hard the synthetic vectors are: what pruning leaves, and the recall of graphs.

Counts only, no times: the share of the entries that Algorithm 1 evaluates in full at every K and
alpha, recall@1 of hnswlib, and what the leading directions of plain vectors leave. Writes
synthetic.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import SINGLE, hold
from experiments.harness.methods import Hiernorm, graph_methods
from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point
from experiments.harness.records import Recorder
from experiments.harness.timing import recall
from experiments.harness.vectors import bound_share
from hiernorm import synthetic

SIZES = (99_000, 500_000)
QUERIES = 1_000
MAJORS = (16, 24, 32)


def measure_share(n: int, point: Point, queries: int, seed: int) -> dict[str, Any]:
    """Share of the entries that Algorithm 1 evaluates in full, over the queries."""
    major, alpha = point
    data = synthetic.hierarchical(n, queries, major=major, alpha=alpha, seed=seed)
    method = Hiernorm("paper", "paper", major=major, alpha=alpha, engine="paper")
    method.build(data.database, seed)
    shares = method.hits(data.queries, SINGLE).certificate.phase2_share
    return {
        "n": n,
        "major": major,
        "alpha": alpha,
        "phase2": float(shares.mean()),
        "phase2_median": float(np.median(shares)),
    }


def measure_graphs(n: int, queries: int, seed: int) -> dict[str, float]:
    """Recall@1 of hnswlib at every ef, at the recommended point."""
    major, alpha = RECOMMENDED
    data = synthetic.hierarchical(n, queries, major=major, alpha=alpha, seed=seed)
    exact = Hiernorm("hiernorm", major=major, alpha=alpha)
    exact.build(data.database, seed)
    true = exact.hits(data.queries, SINGLE).ids
    methods = graph_methods()
    for method in methods[:1]:
        method.build(data.database, seed)
    with hold(1, "single"):
        found = {method.name: method.prepare(SINGLE)(data.queries) for method in methods}
    return {name: recall(ids, true, 1) for name, ids in found.items()}


@click.command("synthetic", cls=Experiment)
@seed_option
@smoke_option
@out_option
def main(seed: int, smoke: bool, out: Path | None) -> None:
    """Count what pruning leaves of synthetic vectors."""
    sizes, queries = ((600, 1_200), 50) if smoke else (SIZES, QUERIES)
    recorder = Recorder("synthetic", seed, {"sizes": list(sizes), "queries": queries})
    file = results_folder("synthetic", out, smoke) / "synthetic.json"
    plain = synthetic.plain(sizes[0], queries, seed=seed)
    shares: list[dict[str, Any]] = []
    result = {
        "queries": queries,
        "graphs": {"n": sizes[0], "recall": measure_graphs(sizes[0], queries, seed)},
        "plain": [
            {"n": sizes[0], "major": k, "share": bound_share(plain.database, plain.queries, k)}
            for k in MAJORS
        ],
        "shares": shares,
    }
    for n in sizes:
        for point in ALL_POINTS:
            shares.append(measure_share(n, point, queries, seed))
            click.echo(shares[-1])
            recorder.write(file, result)


if __name__ == "__main__":
    main()

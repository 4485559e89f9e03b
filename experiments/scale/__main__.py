"""A database larger than memory likes: built from a stream, opened, searched, in processes apart.

Writes scale.json and prints what it found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.machine import LoadWatch
from experiments.harness.records import Recorder
from hiernorm import synthetic
from hiernorm.reference import Float32Array, canonical_scores, rank
from hiernorm.threads import thread_count

DIM, MAJOR, ALPHA, K = 128, 16, 1 / 8, 10
PIECE = 50_000
"""Vectors that are made at a time."""
QUERIES = 300
CHECKED = 3
"""Queries whose answer is compared with the canonical scores of all entries."""


def make_pieces(entries: int, seed: int) -> Iterator[Float32Array]:
    """Synthetic HN vectors, made as they are asked for."""
    for number, first in enumerate(range(0, entries, PIECE)):
        count = min(PIECE, entries - first)
        yield synthetic.hierarchical(
            count, 1, major=MAJOR, alpha=ALPHA, seed=seed + number
        ).database


def make_queries(seed: int) -> Float32Array:
    """Noisy views of points in the first piece."""
    data = synthetic.hierarchical(PIECE, QUERIES, major=MAJOR, alpha=ALPHA, seed=seed)
    return data.queries


class MemoryWatch:
    """The largest anonymous memory of this process: what it holds beyond mapped files."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            self.peak = max(self.peak, memory("RssAnon"))

    def stop(self) -> int:
        """Bytes at the peak."""
        self._done.set()
        self._thread.join()
        return self.peak


def memory(kind: str) -> int:
    """Bytes of resident memory of a kind that Linux tells: RssAnon, RssFile, VmRSS."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(kind + ":"):
            return int(line.split()[1]) * 1024
    return 0


def run_build(path: Path, entries: int, seed: int) -> dict[str, Any]:
    """Build the database from the stream."""
    making = time.perf_counter()
    for _ in make_pieces(min(entries, 4 * PIECE), seed):
        pass
    making_per_entry = (time.perf_counter() - making) / min(entries, 4 * PIECE)
    before = memory("RssAnon")
    watch = MemoryWatch()
    watch_load = LoadWatch()
    start = time.perf_counter()
    db = hiernorm.Database.create(path, DIM, major=MAJOR, alpha=ALPHA)
    db.add(make_pieces(entries, seed), progress=lambda done, _: _say(f"{done:,} of {entries:,}"))
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "seconds_of_making_vectors": making_per_entry * entries,
        "bytes_before": before,
        "peak_bytes": watch.stop(),
        "share_of_other_processes": watch_load.other_processes(),
        **db.info(),
    }


def run_search(path: Path, seed: int) -> dict[str, Any]:
    """Open, search for the first time and many times more."""
    queries = make_queries(seed)
    _forget(path)
    watch_load = LoadWatch()
    before = memory("RssAnon")
    start = time.perf_counter()
    db = hiernorm.Database.open(path)
    opened = time.perf_counter()
    db.search(queries[0], K, threads=1)
    first = time.perf_counter()
    begin = time.perf_counter()
    hiernorm.Database.open(path)
    opened_again = time.perf_counter() - begin
    singles = []
    for query in queries:
        begin = time.perf_counter()
        db.search(query, K, threads=1)
        singles.append(time.perf_counter() - begin)
    again = []
    for query in queries:
        begin = time.perf_counter()
        db.search(query, K, threads=1)
        again.append(time.perf_counter() - begin)
    batches = {}
    for threads in sorted({1, thread_count(None)}):
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            hits = db.search(queries, K, threads=threads)
            times.append((time.perf_counter() - begin) / len(queries))
        batches[str(threads)] = float(np.median(times))
    return {
        "open_seconds": opened - start,
        "open_again_seconds": opened_again,
        "first_query_seconds": first - opened,
        "cold_query_seconds_median": float(np.median(singles)),
        "warm_query_seconds_median": float(np.median(again)),
        "warm_query_seconds_p99": float(np.quantile(again, 0.99)),
        "batch_seconds_per_query": batches,
        "scanned_share": float(hits.certificate.work["scanned"].mean() / len(db)),
        "anonymous_bytes": memory("RssAnon"),
        "anonymous_bytes_before": before,
        "mapped_bytes_resident": memory("RssFile"),
        "share_of_other_processes": watch_load.other_processes(),
        "checked_queries": _check(db, queries[:CHECKED]),
    }


def _check(db: hiernorm.Database, queries: Float32Array) -> int:
    """Compare with the canonical scores of every entry, or stop."""
    best: list[tuple[Any, Any]] = [(np.empty(0), np.empty(0, np.int64)) for _ in queries]
    for ids, rows in db.entries():
        for i, query in enumerate(queries):
            scores = np.concatenate([best[i][0], canonical_scores(query, rows)])
            named = np.concatenate([best[i][1], ids])
            kept = rank(scores, named)[:K]
            best[i] = scores[kept], named[kept]
    hits = db.search(queries, K)
    for i, (scores, ids) in enumerate(best):
        if not (np.array_equal(hits.ids[i], ids) and np.array_equal(hits.scores[i], scores)):
            raise RuntimeError(f"query {i}: not the answer of exhaustive search")
    return len(queries)


def _forget(path: Path) -> None:
    """Ask the system to drop the files from its cache, so that the first query reads the disk."""
    if not hasattr(os, "posix_fadvise"):
        return
    for file in path.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{text}", err=True, nl=False)


def _in_a_process_of_its_own(step: str, path: Path, entries: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "experiments.scale", "--step", step, "--path", str(path)]
    command += ["--entries", str(entries), "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@click.command("scale", cls=Experiment)
@click.option("--entries", default=5_000_000, show_default=True)
@click.option(
    "--path", type=click.Path(path_type=Path), default=Path("build/scale.hn"), show_default=True
)
@click.option("--keep", is_flag=True, help="Keep the database.")
@click.option("--step", type=click.Choice(["build", "search"]), hidden=True)
@seed_option
@smoke_option
@out_option
def main(
    entries: int,
    path: Path,
    keep: bool,
    step: str | None,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Build a database of synthetic HN vectors from a stream, then open and search it."""
    if step == "build":
        click.echo(json.dumps(run_build(path, entries, seed)))
        return
    if step == "search":
        click.echo(json.dumps(run_search(path, seed)))
        return
    if smoke:
        entries = min(entries, 1_500)
    recorder = Recorder("scale", seed, {"entries": entries})
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    built = _in_a_process_of_its_own("build", path, entries, seed)
    result = {
        "entries": entries,
        "dim": DIM,
        "major": MAJOR,
        "alpha": ALPHA,
        "k": K,
        "build": {**built, "path": path.name},
        "search": _in_a_process_of_its_own("search", path, entries, seed),
    }
    if not keep:
        shutil.rmtree(path)
    recorder.write(results_folder("scale", out, smoke) / "scale.json", result)
    click.echo(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

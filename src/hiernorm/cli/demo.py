"""`hiernorm demo`: exactness, a certificate and speed, in a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import click
import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import hiernorm
from hiernorm import synthetic
from hiernorm.reference import Float32Array

MAJOR = 16
ALPHA = 1 / 8
K = 10
REPEATS = 3

Result = TypeVar("Result")


@click.command()
@click.option("--small", is_flag=True, help="5,000 entries instead of 100,000.")
@click.option("--seed", default=0, show_default=True, help="Seed of the synthetic vectors.")
def demo(small: bool, seed: int) -> None:
    """Search synthetic vectors with every engine and compare answers and speed.

    Takes a few seconds and needs no other package. Our engines use one thread and search each
    query by itself; NumPy uses the threads that its BLAS likes.
    """
    console = Console()
    n, m = (5_000, 50) if small else (100_000, 200)
    trained = synthetic.hierarchical(n, m, major=MAJOR, alpha=ALPHA, seed=seed)
    console.print(
        f"[bold]{n:,} hierarchically normalised vectors[/] "
        f"({trained.database.shape[1]} dimensions, K={MAJOR}, a=1/8), {m} queries, k={K}"
    )
    _compare(console, trained, alpha=ALPHA)

    console.print(
        f"\n[bold]{n:,} plain vectors[/]: no training, a lossless rotation is fitted instead"
    )
    _compare(console, synthetic.plain(n, m, seed=seed), alpha=None)


def _compare(console: Console, data: synthetic.Dataset, alpha: float | None) -> None:
    """Search with each engine; show that all agree with the exhaustive one, and how fast."""
    truth, exhaustive_seconds = _search(data, "exhaustive", alpha)
    _, numpy_seconds = _clocked(lambda: _search_numpy(data.database, data.queries))

    table = Table()
    for column in ("engine", "same bits as exhaustive", "us per query", "x exhaustive", "x NumPy"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine in ("paper", "cascade") if alpha is not None else ("cascade",):
        hits, seconds = _search(data, engine, alpha)
        same = np.array_equal(hits.ids, truth.ids) and np.array_equal(hits.scores, truth.scores)
        if not same:
            raise RuntimeError(f"engine {engine} differs from exhaustive search; please report it")
        table.add_row(
            engine,
            "yes",
            f"{seconds / len(hits) * 1e6:,.0f}",
            f"{exhaustive_seconds / seconds:.1f}",
            f"{numpy_seconds / seconds:.1f}",
        )
    console.print(table)
    console.print(_certificate_panel(hits.certificate, query=0))


def _search(
    data: synthetic.Dataset, engine: str, alpha: float | None
) -> tuple[hiernorm.Hits, float]:
    """Build an index and search each query by itself; return hits and seconds."""
    major = None if alpha is None else MAJOR
    index = hiernorm.Index(
        data.database.shape[1], major=major, alpha=alpha, engine=engine, threads=1
    )
    index.add(data.database)
    return _clocked(lambda: index.search(data.queries, k=K, batch_size=1))


def _search_numpy(database: Float32Array, queries: Float32Array) -> None:
    """Do what one would write without an index: a product and a partition per query."""
    for query in queries:
        np.argpartition(database @ query, -K)[-K:]


def _clocked(work: Callable[[], Result]) -> tuple[Result, float]:
    """Do the work a few times; return its result and the seconds of the fastest time."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def _certificate_panel(certificate: hiernorm.Certificate, query: int) -> Panel:
    """Show the certificate of one query, step by step."""
    record = certificate[query]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    proof = "yes" if record.exact else f"no, within {record.gap:.3g}"
    rows = (
        ("entries", f"{record.entries:,}", "in the database"),
        ("sifted", f"{record.sifted:,}", "left by the bound on the major"),
        ("tightened", f"{record.tightened:,}", "left by the codes of the minor"),
        ("settled", f"{record.settled:,}", "scores computed in full"),
        ("k-th score", f"{record.kth_score:.9f}", "of the answer"),
        ("skipped bound", f"{record.skipped_bound:.9f}", "nothing skipped scores higher"),
        ("exact", proof, "proved for this query"),
        ("database", record.digest[:16], "SHA-256 of entries and parameters"),
    )
    for row in rows:
        grid.add_row(*row)
    share = certificate.phase2_share.mean()
    return Panel(
        grid,
        title=f"certificate of query {query}",
        subtitle=f"mean Phase-2 share of all queries: {share:.2%}",
        expand=False,
    )

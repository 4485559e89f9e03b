"""Tables of a report, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hiernorm.bench.goals import TRUSTED_RECALL, fastest_rival
from hiernorm.bench.report import Goal, Measurement, Report

MANNERS = {
    "calls": "one call per query",
    "single": "one call, each query by itself",
    "batch": "one call, queries together",
}

VERDICT_STYLES = {"aim": "green", "floor": "yellow", "missed": "red", "not measured": "dim"}


def render_report(report: Report) -> RenderableType:
    """All tables: one per group of a case, then builds, work and goals."""
    parts: list[RenderableType] = [Text(_headline(report), style="dim")]
    parts += [_group_table(rows) for rows in _groups(report)]
    parts += [_build_table(report), _work_table(report), goal_table(report.goals)]
    parts += [Text(f"{peer}: {reason}", style="dim") for peer, reason in report.missing.items()]
    return Group(*parts)


def goal_table(goals: list[Goal]) -> Table:
    """The goals with floor, aim and what was measured."""
    table = Table(title="Goals (one thread, single queries, k=1, K=16, a=1/8 unless stated)")
    table.add_column("goal")
    for column in ("floor", "aim", "measured"):
        table.add_column(column, justify="right")
    table.add_column("reached")
    for goal in goals:
        measured = "" if goal.measured is None else f"{goal.measured:.3g} {goal.unit}"
        verdict = Text(goal.verdict, style=VERDICT_STYLES[goal.verdict])
        limits = (f"{limit:g} {goal.unit}" for limit in (goal.floor, goal.aim))
        table.add_row(goal.name, *limits, measured, verdict)
    return table


def _headline(report: Report) -> str:
    machine = report.machine
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    return (
        f"{machine['cpu']}, {machine['usable_cores']} cores, {caches}; "
        f"hiernorm {machine['hiernorm']} ({machine['isa']}); "
        f"seed {report.options['seed']}; {machine['date']}"
    )


def _groups(report: Report) -> Iterator[list[Measurement]]:
    def key(row: Measurement) -> tuple[str, int, str, int]:
        return row.case, row.threads, row.manner, row.k

    for _, rows in groupby(report.measurements, key):
        yield list(rows)


def _group_table(rows: list[Measurement]) -> Table:
    """Speed and recall of every method, the fastest first."""
    first = rows[0]
    threads = f"{first.threads} thread{'s' * (first.threads > 1)}"
    table = Table(title=f"{first.case}: {MANNERS[first.manner]}, k={first.k}, {threads}")
    table.add_column("method")
    for column in ("us per query", "spread", "x FAISS flat", "spread", "recall"):
        table.add_column(column, justify="right")
    for row in sorted(_best_variants(rows), key=lambda row: row.seconds):
        table.add_row(
            row.method,
            f"{row.seconds * 1e6:,.1f}",
            f"{min(row.seconds_rounds) * 1e6:,.1f}-{max(row.seconds_rounds) * 1e6:,.1f}",
            _times(row.speedup),
            f"{_times(row.speedup_low)}-{_times(row.speedup_high)}",
            f"{row.recall:.4f}",
            style="bold" if row.family == "cascade" else None,
        )
    graph = fastest_rival(rows, "hnswlib")
    if graph is not None:
        table.caption = f"smallest ef with recall >= {TRUSTED_RECALL}: {graph.method}"
    return table


def _best_variants(rows: list[Measurement]) -> list[Measurement]:
    """All rows, but of Panorama only the best level."""
    best = fastest_rival(rows, "panorama")
    return [row for row in rows if row.family != "panorama" or row is best]


def _build_table(report: Report) -> Table:
    table = Table(title="Builds, one thread")
    table.add_column("case")
    table.add_column("index")
    table.add_column("seconds", justify="right")
    table.add_column("memory over vectors", justify="right")
    for row in report.builds:
        memory = "" if row.memory_ratio is None else f"{row.memory_ratio:.3f}"
        table.add_row(row.case, row.method, f"{row.seconds:.2f}", memory)
    return table


def _work_table(report: Report) -> Table:
    table = Table(title="Work of the cascade, mean over queries")
    table.add_column("case")
    for column in ("k", "Phase-2 share", "settled entries"):
        table.add_column(column, justify="right")
    for row in report.work:
        table.add_row(row.case, str(row.k), f"{row.phase2_share:.3%}", f"{row.settled:.1f}")
    return table


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "?"
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"

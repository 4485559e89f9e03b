"""Tables of a report, for the terminal."""

from __future__ import annotations

from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.harness.comparison import Measurement, Report
from experiments.harness.conditions import Manner
from experiments.harness.records import Record
from experiments.speed.goals import BUSY_SHARE, TRUSTED_RECALL, Goal, check_goals, fastest_rival

COLUMNS: dict[tuple[Manner, int], str] = {
    ("calls", 1): "calls",
    ("single", 1): "single",
    ("single", 10): "single k=10",
    ("batch", 1): "batch",
    ("batch", 10): "batch k=10",
}
"""(manner, k) -> heading."""

LEGEND = (
    "Numbers are times the speed of FAISS flat in the same round: median and half the range.\n"
    "calls: one Python call per query; single: all queries in one call, each searched by itself;\n"
    "batch: all queries in one call, work shared. Without k=10: k=1."
)

VERDICT_STYLES = {"aim": "green", "floor": "yellow", "missed": "red", "not measured": "dim"}


def render_report(record: Record) -> RenderableType:
    """Render all tables: every method where peers took part, an overview, builds and goals."""
    report = Report.from_result(record.result)
    parts: list[RenderableType] = [Text(_headline(record), style="dim"), Text(LEGEND)]

    def key(row: Measurement) -> tuple[str, int]:
        return row.case, row.threads

    for _, group in groupby(report.measurements, key):
        rows = list(group)
        if any(row.family == "numpy" for row in rows):
            parts.append(_case_table(rows))
    parts += [_overview_table(report), _uniform_table(report), _build_table(report)]
    goals = check_goals(report)
    if any(goal.measured is not None for goal in goals):  # none is about vectors of a user
        parts.append(goal_table(goals))
    parts += [Text(f"{peer}: {reason}", style="dim") for peer, reason in report.missing.items()]
    return Group(*parts)


def goal_table(goals: list[Goal]) -> Table:
    """Tabulate the goals with floor, aim and what was measured."""
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


def _headline(record: Record) -> str:
    machine = record.machine
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    others = record.load["other_processes"] or 0.0
    warning = f"\nOther processes took {others:.0%} of the processors: do not trust these times."
    return (
        f"{machine['cpu']}, {machine['usable_cores']} cores, {caches}; "
        f"hiernorm {record.versions['hiernorm']} ({machine['isa']}); "
        f"seed {record.seed}; {record.date}"
        f"{warning if others > BUSY_SHARE else ''}"
    )


def _case_table(rows: list[Measurement]) -> Table:
    """Tabulate every method of one case, the fastest at single queries first."""
    threads = rows[0].threads
    table = Table(title=f"{rows[0].case}, {threads} thread{'s' * (threads > 1)}")
    table.add_column("method")
    for column in ("us, single", *COLUMNS.values(), "recall@1", "recall@10"):
        table.add_column(column, justify="right")
    by_method: dict[str, list[Measurement]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    single = [row for row in rows if (row.manner, row.k) == ("single", 1)]
    for first in sorted(_best_variants(single), key=lambda row: row.seconds):
        cells = {(row.manner, row.k): row for row in by_method[first.method]}
        table.add_row(
            first.method,
            f"{first.seconds * 1e6:,.1f}",
            *(_speedup(cells.get(way)) for way in COLUMNS),
            *(f"{cells['single', k].recall:.4f}" for k in (1, 10)),
            style="bold" if first.family == "cascade" else None,
        )
    graph = fastest_rival(single, "hnswlib")
    if graph is not None:
        table.caption = f"for recall@1 of {TRUSTED_RECALL}: {graph.setting}"
    return table


def _best_variants(rows: list[Measurement]) -> list[Measurement]:
    """Keep all rows, but of Panorama only the best level."""
    best = fastest_rival(rows, "panorama")
    return [row for row in rows if row.family != "panorama" or row is best]


def _overview_table(report: Report) -> Table:
    """Tabulate our engines in every case: one thread, k=1.

    The share that Algorithm 1 leaves over compares with the paper's tables; the cascade's own is
    larger, as its codes are coarser and its threshold is the first one found.
    """
    table = Table(title="Our engines, one thread, k=1")
    table.add_column("case")
    for column in ("Phase-2 share", "sifted", "cascade", "paper", "cascade, batch", "paper, batch"):
        table.add_column(column, justify="right")
    shares = {(row.case, row.family): row.phase2_share for row in report.work if row.k == 1}
    for case in dict.fromkeys(row.case for row in report.work):
        rows = [
            row for row in report.measurements if (row.case, row.threads, row.k) == (case, 1, 1)
        ]
        left = [
            f"{shares[case, engine]:.3%}" if (case, engine) in shares else ""
            for engine in ("paper", "cascade")
        ]
        cells = [
            _speedup(fastest_rival((row for row in rows if row.manner == manner), engine))
            for manner in ("single", "batch")
            for engine in ("cascade", "paper")
        ]
        table.add_row(case, *left, *cells)
    return table


def _uniform_table(report: Report) -> Table:
    """Tabulate cases tutorial-...: what the planner chooses beside FAISS flat."""
    table = Table(title="Uniform random vectors, squared distances, one thread")
    for column in ("case", "method", "queries"):
        table.add_column(column)
    for column in ("us per query", "speed-up"):
        table.add_column(column, justify="right")
    for row in report.measurements:
        if row.case.startswith("tutorial-"):
            cells = (row.case, row.method, row.manner, f"{row.seconds * 1e6:,.1f}", _speedup(row))
            table.add_row(*cells)
    return table


def _build_table(report: Report) -> Table:
    """Tabulate what our indexes and hnswlib's graph took; the others only copy the vectors.

    Cases of the time to build have the threads that a library takes, and FAISS beside ours.
    """
    table = Table(title="Builds, one thread; cases build-...: as a user calls it")
    table.add_column("case")
    table.add_column("index")
    table.add_column("seconds", justify="right")
    table.add_column("memory over vectors", justify="right")
    for row in report.builds:
        copies = row.memory_ratio is None and row.family != "hnswlib"
        if copies and not row.case.startswith(("build-", "tutorial-")):
            continue
        memory = "" if row.memory_ratio is None else f"{row.memory_ratio:.3f}"
        table.add_row(row.case, row.method, f"{row.seconds:.3f}", memory)
    return table


def _speedup(row: Measurement | None) -> str:
    """Format a speed-up and the half of its range, in per cent: 57.2 ±3%."""
    if row is None or row.speedup is None or row.speedup_low is None or row.speedup_high is None:
        return ""
    median = f"{row.speedup:.3g}" if row.speedup < 1000 else f"{row.speedup:,.0f}"
    if row.family == "flat" or len(row.seconds_rounds) == 1:
        return median
    return f"{median} ±{(row.speedup_high - row.speedup_low) / 2 / row.speedup:.0%}"

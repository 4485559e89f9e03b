"""Tables of what a query costs, one for each section."""

from __future__ import annotations

from pathlib import Path

from experiments.descriptors.columns import microseconds
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

FOLDER = "queries/results"


@table("queries-calls", f"{FOLDER}/calls.json")
def render_calls(file: Path) -> Rows:
    """The fixed cost of a call."""
    rows = read_record(file).result["rows"]
    return Rows(["", "us"], [[row["method"], f"{row['us']:.2f}"] for row in rows])


@table("queries-groups", f"{FOLDER}/groups.json")
def render_groups(file: Path) -> Rows:
    """A query in a call with others, for each size: together, over one by one."""
    rows = read_record(file).result["rows"]
    groups = sorted({row["group"] for row in rows})
    table_rows = []
    for entries in sorted({row["entries"] for row in rows}):
        here = {row["group"]: row for row in rows if row["entries"] == entries}
        cells = [
            f"{microseconds(here[group]['together'])} "
            f"({here[group]['together'] / here[group]['one_by_one']:.2f})"
            for group in groups
        ]
        table_rows.append([f"{entries:,}", *cells])
    return Rows(["N", *(f"{group:,} in a call" for group in groups)], table_rows)


@table("queries-cells", f"{FOLDER}/cells.json")
def render_cells(file: Path) -> Rows:
    """The planner's choice, and how far it is from the better of both."""
    table_rows = []
    for row in read_record(file).result["rows"]:
        times = [row[name] for name in ("chosen", "never", "always")]
        worse = row["chosen"] / min(row["never"], row["always"]) - 1
        manner = "single" if row["group"] == 1 else "batch"
        cells = [str(row["major"]), f"{row['entries']:,}", manner, *map(microseconds, times)]
        table_rows.append([*cells, f"{worse:+.1%}"])
    head = ["K", "N", "queries", "chosen, us", "no cells", "always cells", "beyond the better"]
    return Rows(head, table_rows)


@table("queries-hits", f"{FOLDER}/hits.json")
def render_hits(file: Path) -> Rows:
    """Ten hits beside one."""
    table_rows = [
        [
            f"{row['entries']:,}",
            "single" if row["group"] == 1 else "batch",
            microseconds(row["k1"]),
            microseconds(row["k10"]),
            f"{row['k10'] / row['k1']:.2f}",
        ]
        for row in read_record(file).result["rows"]
    ]
    return Rows(["N", "queries", "k = 1, us", "k = 10, us", "ratio"], table_rows)


@table("queries-threads", f"{FOLDER}/threads.json")
def render_threads(file: Path) -> Rows:
    """One query by two threads."""
    table_rows = [
        [
            f"{row['entries']:,}",
            "yes" if row["cells"] else "no",
            microseconds(row["one"]),
            microseconds(row["two"]),
            f"{row['one'] / row['two']:.2f}",
        ]
        for row in read_record(file).result["rows"]
    ]
    return Rows(["N", "cells", "one thread, us", "two threads, us", "ratio"], table_rows)

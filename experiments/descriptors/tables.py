"""Tables of real descriptors: times of all methods, and how hnswlib was set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.descriptors.columns import COLUMNS, best_of, microseconds
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "descriptors/results/descriptors.json"


@table("descriptors", SOURCE)
def render_times(file: Path) -> Rows:
    """Microseconds per query; the least of a row is bold."""
    rows = []
    for size in read_record(file).result["sizes"]:
        for group in size["groups"]:
            start = [f"{size['n']:,}", str(group["k"]), group["manner"]]
            rows.append([*start, *contest_cells(size, group)])
    return Rows(["N", "k", "queries", *COLUMNS.values()], rows)


def contest_cells(
    contest: dict[str, Any], group: dict[str, Any], columns: Iterable[str] = COLUMNS
) -> list[str]:
    """Times of all columns; the least is bold, and a recall that was not reached is told."""
    found = [best_of(group, key) for key in columns]
    reached = [
        row is not None and _has_reached(contest, row["method"], group["k"]) for row in found
    ]
    times = [
        row["microseconds"] for row, valid in zip(found, reached, strict=True) if row and valid
    ]
    cells = []
    for row, valid in zip(found, reached, strict=True):
        text = "" if row is None else microseconds(row["microseconds"])
        if row is not None and not valid:
            text += f" (recall {row['recall']:.2f})"
        elif row is not None and row["microseconds"] == min(times):
            text = f"**{text}**"
        cells.append(text)
    return cells


def _has_reached(contest: dict[str, Any], method: str, k: int) -> bool:
    """Whether a method is exact, or has reached the recall that it was tuned for."""
    choice = contest["choices"].get(method, {}).get(str(k), {"reached": True})
    return bool(choice["reached"])


@table("descriptors-settings", SOURCE)
def render_settings(file: Path) -> Rows:
    """Links, ef and recall of hnswlib on the queries that were timed; single queries."""
    rows = []
    for size in read_record(file).result["sizes"]:
        for group in size["groups"]:
            if group["manner"] != "single":
                continue
            cells = [f"{size['n']:,}", str(group["k"])]
            for key in ("0.99", "0.999"):
                name = f"hnswlib, recall {key}"
                choice = size["choices"].get(name, {}).get(str(group["k"]))
                cells.append(
                    ""
                    if choice is None
                    else f"{choice['settings']}: {group['methods'][name]['recall']:.4f}"
                )
            rows.append(cells)
    return Rows(["N", "k", "hnswlib for 0.99: recall", "hnswlib for 0.999: recall"], rows)

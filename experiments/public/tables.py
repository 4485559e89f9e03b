"""The table of public shapes."""

from __future__ import annotations

from pathlib import Path

from experiments.descriptors.columns import COLUMNS
from experiments.descriptors.tables import contest_cells
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("public", "public/results/public.json")
def render_public(file: Path) -> Rows:
    """Microseconds per query; the least of a row is bold."""
    rows = []
    for found in read_record(file).result["sets"]:
        label = f"{found['set']} ({found['origin']})"
        for group in found["groups"]:
            start = [label, f"{found['n']:,}", str(group["k"]), group["manner"]]
            rows.append([*start, *contest_cells(found, group)])
    return Rows(["set", "N", "k", "queries", *COLUMNS.values()], rows)

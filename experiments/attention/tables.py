"""The table of attention."""

from __future__ import annotations

from pathlib import Path

from experiments.descriptors.columns import WITH_LISTS
from experiments.descriptors.tables import contest_cells
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("attention", "attention/results/attention.json")
def render_attention(file: Path) -> Rows:
    """Microseconds per query by k; where a recall is out of reach, the best one."""
    found = read_record(file).result
    rows = [
        [
            f"{found['n']:,}",
            str(group["k"]),
            group["manner"],
            *contest_cells(found, group, WITH_LISTS),
        ]
        for group in found["groups"]
    ]
    return Rows(["N", "k", "queries", *WITH_LISTS.values()], rows)

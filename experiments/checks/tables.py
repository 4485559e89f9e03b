"""The table of checks."""

from __future__ import annotations

from pathlib import Path

from experiments.checks.__main__ import describe
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("checks", "checks/results/checks.json")
def render_checks(file: Path) -> Rows:
    """Every check: how much it ran, and what it found."""
    rows = []
    for row in read_record(file).result["checks"]:
        ran = [f"{row['passed']:,} tests passed"] if row["passed"] else []
        ran += [f"{row['skipped']:,} skipped"] if row["skipped"] else []
        ran += [f"{row['inputs']:,} inputs"] if row["inputs"] else []
        minutes = f"{row['seconds'] / 60:.1f}"
        rows.append(
            [f"`make {row['target']}`", row["what"], ", ".join(ran), describe(row), minutes]
        )
    return Rows(["command", "what is done", "ran", "found", "minutes"], rows)

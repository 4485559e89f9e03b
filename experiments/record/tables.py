"""The table of the record: when each step was run, for how long, and beside what load."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.record.log import EARLIER
from experiments.record.plan import PLAN
from experiments.tables.registry import table


@table("record", EARLIER.relative_to(EARLIER.parents[2]).as_posix())
def render_record(file: Path) -> Rows:
    """Every step that has a result."""
    steps = read_record(file).result["steps"]
    rows = []
    for step in PLAN:
        found = steps.get(step.name)
        if step.prepares:
            continue
        if found is None:
            rows.append([step.name, "not run", "", ""])
            continue
        known = step.timing and step.alone and found["load"] is not None
        load = f"{found['load']:.1%}" if known else ""
        rows.append([step.name, found["commit"][:12], f"{found['seconds'] / 60:.1f}", load])
    return Rows(["step", "commit", "minutes", "load of other processes"], rows)

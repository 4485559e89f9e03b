"""The table of quality against time."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("quality", "quality/results/quality.json")
def render_quality(file: Path) -> Rows:
    """FPR@95 on both scenes and microseconds per query, a row per K."""
    found = read_record(file).result["rows"]
    families = list(dict.fromkeys(row["family"] for row in found))
    cells = {
        (row["major"], row["family"]): ", ".join(f"{rate:.4f}" for rate in row["fpr95"].values())
        + f": {row['microseconds']:,.0f} us"
        for row in found
    }
    majors = list(dict.fromkeys(row["major"] for row in found))
    rows = [[str(major), *(cells[major, family] for family in families)] for major in majors]
    return Rows(["K", *families], rows)

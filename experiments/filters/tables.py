"""The table of filters."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("filters", "filters/results/filters.json")
def render_filters(file: Path) -> Rows:
    """Latency by the share of ids that are allowed."""
    rows = []
    for row in read_record(file).result["rows"]:
        ours, theirs = row["hiernorm_seconds"], row["faiss_seconds"]
        allowed = "all (no filter)" if row["share"] == 1 else f"{100 * row['share']:.2g}%"
        cells = [f"{allowed}: {row['allowed']:,}", f"{1e6 * ours:,.0f} us"]
        cells += [f"{1e6 * theirs:,.0f} us", f"{theirs / ours:.0f}x", f"{row['scanned']:,.0f}"]
        rows.append(cells)
    return Rows(["ids allowed", "hiernorm", "FAISS", "ratio", "entries read"], rows)

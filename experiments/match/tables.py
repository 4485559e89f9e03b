"""The table of matching two sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

METHODS = {
    "hiernorm": "hiernorm",
    "kornia": "kornia `match_mnn`",
    "opencv": "OpenCV `BFMatcher`",
}


@table("match", "match/results/match.json")
def render_match(file: Path) -> Rows:
    """Time and peak memory by size and kind of vectors."""
    found = {(r["n"], r["kind"], r["method"]): r for r in read_record(file).result["rows"]}
    kinds = dict.fromkeys((n, kind) for n, kind, _ in found)
    rows = [
        [f"{n:,}", kind, *(_cell(found[n, kind, method]) for method in METHODS)]
        for n, kind in kinds
    ]
    return Rows(["n x n", "vectors", *METHODS.values()], rows)


def _cell(row: dict[str, Any]) -> str:
    if "failure" in row:
        return str(row["failure"])
    seconds = row["seconds"]
    time = f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"{time}, {row['peak_bytes'] / 2**20:.0f} MiB"

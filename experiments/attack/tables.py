"""The tables of reliability: what each kind of attack found, and what the checks cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from experiments.attack.check_cost import overhead
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

OUTCOMES = {
    "right": "answered right",
    "whole": "database whole",
    "refused": "refused with an error",
    "answered": "answered from forged data",
}


@table("attack", "attack/results/reliability.json")
def render_attacks(file: Path) -> Rows:
    """A row per kind of attack; attacks on several databases are added up."""
    kinds: dict[str, Counter[str]] = {}
    delays: dict[str, dict[str, Any]] = {}
    for what, found in read_record(file).result.items():
        kind = what.partition(":")[0]
        counts = {word: n for word, n in found.items() if isinstance(n, int)}
        kinds.setdefault(kind, Counter()).update(counts)
        delays[kind] = found
    rows = []
    for kind, counts in kinds.items():
        tried = sum(n for word, n in counts.items() if word not in ("bytes", "not available"))
        of_all = f" of {counts['bytes']:,}" if "bytes" in counts else ""
        outcomes = [f"{counts[word]:,} {text}" for word, text in OUTCOMES.items() if counts[word]]
        if "slowest" in delays[kind]:
            outcomes.append(
                f"slowest end {1000 * delays[kind]['slowest']:.0f} ms of processor time"
            )
        if counts["not available"]:
            outcomes.append("not available on this machine")
        wrong, ended = counts["wrong"], counts["crashed"] + counts["ended"]
        rows.append([kind, f"{tried:,}{of_all}", "; ".join(outcomes), f"{wrong:,}", f"{ended:,}"])
    return Rows(["attack", "times", "outcome", "silently wrong", "process ended"], rows)


@table("check-cost", "attack/results/cost.json")
def render_cost(file: Path) -> Rows:
    """A row per level of `Database.open(check=)`."""
    found = read_record(file).result["rows"]
    single, batch = overhead(found, "single"), overhead(found, "batch")
    rows = []
    for row in found:
        check = row["check"]
        rows.append(
            [
                f"`{check!r}`" + " (default)" * (check == "touched"),
                f"{1e3 * row['first_search']:.1f} ms",
                f"{1e6 * row['single']:.1f} us ({single[check]:+.1%})",
                f"{1e6 * row['batch']:.1f} us ({batch[check]:+.1%})",
            ]
        )
    header = ["check", "open and first query", "later query", "query of a batch"]
    return Rows(header, rows)

"""Tables of roofs: what the machine gives, and how near each case comes."""

from __future__ import annotations

from pathlib import Path

from experiments.descriptors.columns import microseconds
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "roofs/results/roofs.json"

WORDS = {
    "codes": "codes from {place}",
    "lines": "lines at random",
    "products": "products of bytes",
}


@table("roofs", SOURCE)
def render_roofs(file: Path) -> Rows:
    """What one core gets from each level, and how much it multiplies."""
    roofs = read_record(file).result["roofs"]
    rows = [
        [f"{level['name']}: read in order", f"{level['read'] / 1e9:,.0f} GB/s"]
        for level in roofs["levels"]
    ]
    rows += [
        [f"{level['name']}: lines of 64 bytes at random", f"{level['lines'] / 1e6:,.0f} million/s"]
        for level in roofs["levels"]
    ]
    names = {
        "byte_products": "products of bytes, summed to 32 bits",
        "float_products": "products of float32, fused with additions",
        "double_products": "products of float64, added without fusing",
    }
    rows += [[label, f"{roofs[name] / 1e9:,.0f} billion/s"] for name, label in names.items()]
    return Rows(["one core", "at most"], rows)


@table("roofs-cases", SOURCE)
def render_cases(file: Path) -> Rows:
    """Time, bound, and the share that the bound is of the time."""
    rows = []
    for row in read_record(file).result["cases"]:
        by = WORDS[row["by"]].format(place=row["from"])
        cells = [row["case"], row["manner"], str(row["k"]), f"{row['bytes_read'] / 1e3:,.1f}"]
        cells += [microseconds(row["microseconds"]), microseconds(row["bound"]), by]
        cells.append(f"{row['bound'] / row['microseconds']:.0%}")
        cells.append(f"{row['flat_bound'] / row['flat_microseconds']:.0%}")
        rows.append(cells)
    head = ["case", "queries", "k", "kB a query", "us", "bound, us", "bounded by", "bound / us"]
    return Rows([*head, "the same, FAISS flat"], rows)

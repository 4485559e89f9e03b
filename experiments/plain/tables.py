"""The table of plain vectors."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("plain", "plain/results/plain.json")
def render_plain(file: Path) -> Rows:
    """Every set at k = 1 and k = 10, microseconds per query."""
    rows = []
    for found in read_record(file).result["sets"]:
        for k in (1, 10):
            times = found[f"k={k}"]["microseconds"]
            panorama = min(time for name, time in times.items() if name.startswith("Panorama"))
            read = found[f"k={k}"]["work"]["hiernorm"]["scanned"]
            cells = [f"{found['set']}, {found['n']:,} x {found['dim']}"]
            cells += [str(found["major"]["hiernorm"]), str(k), f"{read:.0%}"]
            values = (times["hiernorm"], times["hiernorm, no cells"], times["FAISS IndexFlatIP"])
            cells += [f"{value:,.0f}" for value in (*values, panorama)]
            graphs = (times.get(f"hnswlib, recall {recall}") for recall in ("0.99", "0.999"))
            rows.append([*cells, *("" if time is None else f"{time:,.0f}" for time in graphs)])
    head = ["", "K", "k", "read", "us", "no cells", "FAISS flat", "Panorama, best"]
    return Rows([*head, "hnswlib, 0.99", "hnswlib, 0.999"], rows)

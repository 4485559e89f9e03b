"""Tables of the synthetic vectors: how hard they are, beside the paper's scenes."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows, percent
from experiments.harness.points import ALL_POINTS, RECOMMENDED, fraction
from experiments.harness.records import read_record
from experiments.reproduce.findings import load_paper, paper_speed
from experiments.tables.registry import table

SOURCE = "synthetic/results/synthetic.json"


@table("synthetic-shares", SOURCE)
def render_shares(file: Path) -> Rows:
    """Share of the entries that Algorithm 1 evaluates in full, beside Table 3 of the paper."""
    record = read_record(file)
    sizes = record.settings["sizes"]
    found = {(row["n"], row["major"], row["alpha"]): row for row in record.result["shares"]}
    rows = []
    for point in ALL_POINTS:
        ours = [found.get((n, *point)) for n in sizes]
        cells = [
            str(point[0]),
            fraction(point[1]),
            *(percent(None if row is None else row["phase2"]) for row in ours),
            *(percent(paper_speed(point, scene)[1]) for scene in (0, 1)),
        ]
        rows.append([f"**{cell}**" for cell in cells] if point == RECOMMENDED else cells)
    head = ["K", "alpha", *(f"here, N = {n:,}" for n in sizes)]
    return Rows([*head, *(f"{scene}, N = 500,000" for scene in load_paper()["scenes"])], rows)


@table("synthetic-graphs", SOURCE)
def render_graphs(file: Path) -> Rows:
    """Recall@1 of hnswlib at every ef, beside Table 4 of the paper."""
    theirs = {row["method"].removeprefix("HNSW "): row["recall"] for row in load_paper()["graphs"]}
    rows = []
    for name, recall in read_record(file).result["graphs"]["recall"].items():
        ef = name.removeprefix("hnswlib ")
        rows.append([ef.removeprefix("ef="), f"{100 * recall:.1f}%", theirs[ef]])
    return Rows(["ef", "here", "the paper, trevi"], rows)


@table("synthetic-plain", SOURCE)
def render_plain(file: Path) -> Rows:
    """Share of the plain entries that the bound on the leading directions leaves."""
    found = read_record(file).result["plain"]
    return Rows(
        ["K", "entries left"], [[str(row["major"]), percent(row["share"])] for row in found]
    )

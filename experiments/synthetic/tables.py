"""Tables of synthetic vectors beside the paper's and real ones."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.command import ROOT
from experiments.harness.page import MISSING, Rows
from experiments.harness.points import ALL_POINTS, fraction
from experiments.harness.records import read_record
from experiments.reproduce.findings import Findings, load_paper, paper_speed
from experiments.tables.registry import table

SOURCE = "synthetic/results/synthetic.json"


@table("synthetic-shares", SOURCE)
def render_shares(file: Path) -> Rows:
    """Share of the entries that Algorithm 1 evaluates in full, in per cent."""
    shares = {
        (row["n"], row["major"], row["alpha"]): row for row in read_record(file).result["shares"]
    }
    sizes = list(dict.fromkeys(n for n, _, _ in shares))
    rows = [
        [
            str(point[0]),
            fraction(point[1]),
            *(f"{100 * shares[(n, *point)]['phase2']:.2f}" for n in sizes),
            *(f"{100 * paper_speed(point, scene)[1]:.1f}" for scene in (0, 1)),
        ]
        for point in ALL_POINTS
    ]
    theirs = [f"{scene}, 500,000" for scene in load_paper()["scenes"]]
    return Rows(["K", "alpha", *(f"here, n={n:,}" for n in sizes), *theirs], rows)


@table("synthetic-recall", SOURCE)
def render_recall(file: Path) -> Rows:
    """Recall@1 of hnswlib beside the paper's."""
    paper = {row["method"]: row["recall"] for row in load_paper()["graphs"]}
    rows = []
    for method, share in read_record(file).result["graphs"]["recall"].items():
        ef = method.rpartition("=")[2]
        rows.append([ef, f"{share:.1%}", paper.get(f"HNSW ef={ef}", "")])
    return Rows(["ef", "here", f"the paper, {load_paper()['scenes'][0]}"], rows)


@table("synthetic-plain", SOURCE)
def render_plain(file: Path) -> Rows:
    """What the leading directions of plain vectors leave, in per cent, beside real patches."""
    findings = Findings(ROOT / "reproduce" / "results")
    real = {
        (name, row["major"]): f"{100 * row['lossless_share_real_arithmetic']:.2f}"
        for name in findings.tests
        if (found := findings.get(f"rotation/{name}")) is not None
        for row in found["rows"]
    }
    rows = [
        [
            str(row["major"]),
            f"{100 * row['share']:.2f}",
            *(real.get((name, row["major"]), MISSING) for name in findings.tests),
        ]
        for row in read_record(file).result["plain"]
    ]
    return Rows(["K", "here", *(f"patches of {name}" for name in findings.tests)], rows)

"""Tables of text embeddings: times, and what each step leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.harness.page import Rows, percent
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "text/results/text.json"

LABELS = {
    "hiernorm": "`Index(384)`: rotation, cells where they pay",
    "hiernorm, rotation": "rotation, no cells",
    "hiernorm, rotation and cells": "rotation, always cells",
    "hiernorm, no rotation, K=128": "no rotation, K = 128",
    "hiernorm, no rotation, K=255": "no rotation, K = 255",
    "hiernorm, exhaustive": '`engine="exhaustive"`',
}
STEPS = ("scanned", "sifted", "tightened", "settled")


@table("text", SOURCE)
def render_times(file: Path) -> Rows:
    """Processor time per query, and how many times the speed of FAISS flat; hnswlib's recall."""
    groups = read_record(file).result["groups"]
    found = [{row["method"]: row for row in group["methods"]} for group in groups]
    rows = [
        [
            LABELS.get(method, method),
            *(_time(of[method]) for of in found),
        ]
        for method in found[0]
    ]
    return Rows(["", *(f"{group['manner']}, k = {group['k']}" for group in groups)], rows)


@table("text-steps", SOURCE)
def render_steps(file: Path) -> Rows:
    """What each step leaves of all entries, for k = 1 and k = 10."""
    result = read_record(file).result
    rows = []
    for method in result["survivors"]["k=1"]:
        major = f"K = {result['majors'][method]}"
        label = LABELS[method] if major in LABELS[method] else f"{LABELS[method]}, {major}"
        shares = [
            ", ".join(
                _share(result["survivors"][k][method][step] / result["entries"])
                for k in ("k=1", "k=10")
            )
            for step in STEPS
        ]
        rows.append([label, *shares])
    return Rows(["", *STEPS], rows)


def _time(row: dict[str, Any]) -> str:
    text = f"{row['us_per_query']:,.0f} us, {row['speed_up']:.1f}x"
    return f"{text}, {row['recall']:.4f}" if row["method"].startswith("hnswlib") else text


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.01 else f"{value:.3%}"


@table("text-post-hoc", "text/results/post_hoc.json")
def render_post_hoc(file: Path) -> Rows:
    """Share of the true neighbours that stay if embeddings are normalised, a row per K."""
    kept = read_record(file).result["kept"]
    rows = [[str(row["major"]), percent(row["k=1"]), percent(row["k=10"])] for row in kept]
    return Rows(["major", "nearest neighbour kept", "ten nearest kept"], rows)

"""Tables of growth: by size, by K and alpha, against graphs, and what the planner chose."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments.growth.picture import FOLLOWED
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "growth/results/cells.json"
GRAPHS = "growth/results/graphs.json"
PANORAMA = "Panorama, 8 levels"
COMPARED = 100_000


def _render_sizes(file: Path, *, major: int, alpha: str) -> Rows:
    """One point at every size; the last row has the exponents of N from 100,000 entries on."""
    case = _case(read_record(file).result, major, alpha)
    rows = []
    for row in case["rows"]:
        times = row["microseconds"]
        cells = [f"{row['n']:,}", f"{row['scanned'] / row['n']:.1%}", f"{times['hiernorm']:,.0f}"]
        cells += [f"{times['hiernorm, no cells']:,.0f}", _time(times, PANORAMA)]
        cells += [f"{row['build_seconds']['hiernorm']:.2f}", f"{row['bytes'] / row['n']:.0f}"]
        rows.append(cells)
    growth = case["growth"]
    if growth.get("time"):
        powers = [f"N^{growth['scanned']:.2f}", f"N^{growth['time']:.2f}"]
        rows.append(["growth from 100,000 on", *powers, "", "", "", ""])
    head = ["N", "entries read", "us", "us, no cells", "us, Panorama", "build, s"]
    return Rows([*head, "bytes an entry"], rows)


for _major, _alpha in FOLLOWED:
    _name = f"growth-K{_major}-a{_alpha.replace('/', '_')}"
    table(_name, SOURCE)(partial(_render_sizes, major=_major, alpha=_alpha))


@table("growth-points", SOURCE)
def render_points(file: Path) -> Rows:
    """Every K and alpha at 100,000 entries and at the largest size."""
    result = read_record(file).result
    rows = []
    largest = max(row["n"] for case in result["cases"] for row in case["rows"])
    for case in sorted(result["cases"], key=lambda case: (case["major"], _value(case))):
        sizes = {row["n"]: row for row in case["rows"]}
        cells = [str(case["major"]), case["alpha_text"]]
        for n, peers in ((COMPARED, (PANORAMA,)), (largest, ())):
            row = sizes[n]
            times = row["microseconds"]
            cells += [f"{row['scanned'] / n:.1%}", f"{times['hiernorm']:,.0f}"]
            cells += [f"{times['hiernorm, no cells']:,.0f}", *(_time(times, p) for p in peers)]
        rows.append(cells)
    head = ["K", "alpha", f"read at {COMPARED:,}", "us", "no cells", "Panorama"]
    return Rows([*head, f"read at {largest:,}", "us", "no cells"], rows)


@table("growth-graphs", GRAPHS)
def render_graphs(file: Path) -> Rows:
    """Against hnswlib at recall 0.999."""
    rows = []
    for case in read_record(file).result["cases"]:
        for row in case["rows"]:
            times, built = row["microseconds"], row["build_seconds"]
            graph = next((name for name in times if name.startswith("hnswlib")), None)
            if graph is None:
                continue
            cells = [str(case["major"]), case["alpha_text"], f"{row['n']:,}"]
            cells += [f"{times['hiernorm']:,.0f}", f"{times['hiernorm, no cells']:,.0f}"]
            choice = row.get("choices", {}).get(graph, {}).get("1", {"settings": graph})
            cells.append(f"{times[graph]:,.0f} ({choice['settings'].rpartition('=')[2]})")
            cells.append(f"{times[graph] / times['hiernorm']:.1f}")
            (hnsw,) = (name for name in built if name.startswith("hnswlib"))
            cells += [f"{built['hiernorm']:.2f}", f"{built[hnsw]:,.0f}"]
            rows.append(cells)
    head = ["K", "alpha", "N", "us", "us, no cells", "us, hnswlib (ef)", "times hnswlib"]
    return Rows([*head, "build, s", "hnswlib's, s"], rows)


@table("growth-planner", SOURCE)
def render_planner(file: Path) -> Rows:
    """What the planner chose beside both choices, microseconds per query."""
    rows = [
        [row["case"], *(f"{row[choice]:,.0f}" for choice in ("chosen", "flat", "cells"))]
        for row in read_record(file).result["planner"]
    ]
    return Rows(["", "chosen", "no cells", "always cells"], rows)


def _case(result: dict[str, Any], major: int, alpha: str) -> dict[str, Any]:
    cases: list[dict[str, Any]] = result["cases"]
    return next(c for c in cases if (c["major"], c["alpha_text"]) == (major, alpha))


def _value(case: dict[str, Any]) -> float:
    return float(case["rows"][0]["alpha"])


def _time(times: dict[str, float], name: str) -> str:
    return f"{times[name]:,.0f}" if name in times else ""


@table("growth-large", "growth/results/large.json")
def render_large(file: Path) -> Rows:
    """Synthetic HN entries up to ten million; the last row of a point has the exponents of N."""
    rows = []
    ways = [f"single k={k}, {threads}" for k in (1, 10) for threads in ("1 thread", "2 threads")]
    for case in read_record(file).result["cases"]:
        label = f"K = {case['major']}, alpha = {case['alpha_text']}"
        for row in case["rows"]:
            cells = [label, f"{row['n']:,}", f"{row['work']['k=1']['scanned'] / row['n']:.2%}"]
            cells += [f"{row['microseconds'][way]:,.0f}" for way in ways]
            cells += [f"{row['build_seconds']:.1f}", f"{row['bytes'] / 2**30:.2f}"]
            rows.append(cells)
        rows += [[label, f"{n:,}", "failed", *[""] * 6] for n in case["failed"]]
        powers = [_power(case["growth"].get(name)) for name in ("scanned k=1", *ways)]
        rows.append([label, "growth", *powers, "", ""])
    head = ["", "N", "read, k = 1"]
    head += [f"us, k = {k}, {t} thread{'s' * (t > 1)}" for k in (1, 10) for t in (1, 2)]
    return Rows([*head, "build, s", "memory, GiB"], rows)


def _power(exponent: float | None) -> str:
    return "" if exponent is None else f"N^{exponent:.2f}"

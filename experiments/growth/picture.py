"""The picture of growth: time and entries read against N."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLLOWED = ((16, "1/8"), (8, "1/32"))
"""Points that are measured at every size; the first with hnswlib at every size that is allowed."""


def draw(report: dict[str, Any], file: Path) -> None:
    """Draw time and entries read against N, of the points that every size was measured for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    times, read = figure.subplots(1, 2)
    for case in report["cases"]:
        rows = case["rows"]
        if (case["major"], case["alpha_text"]) not in FOLLOWED:
            continue
        label = f"K={case['major']}, alpha={case['alpha_text']}"
        n = [r["n"] for r in rows]
        (line,) = times.plot(n, [r["microseconds"]["hiernorm"] for r in rows], "o-", label=label)
        colour = line.get_color()
        flat = [r["microseconds"]["hiernorm, no cells"] for r in rows]
        times.plot(n, flat, ":", color=colour)
        graph = [(r["n"], v) for r in rows for k, v in r["microseconds"].items() if "hnsw" in k]
        if graph:
            times.plot(*zip(*graph, strict=True), "--", color=colour)
        read.plot(n, [r["scanned"] / r["n"] for r in rows], "o-", color=colour, label=label)
    times.set(xscale="log", yscale="log", xlabel="entries", ylabel="microseconds per query")
    times.set_title("solid: hiernorm, dotted: without cells, dashed: hnswlib at recall 0.999")
    times.title.set_fontsize(9)
    read.set(xscale="log", yscale="log", xlabel="entries", ylabel="share of the entries read")
    for axes in (times, read):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(file, dpi=150)

"""The picture of real descriptors: time per query against N, a line per method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.descriptors.columns import COLUMNS, best_of, find_group

STYLES = {"hiernorm": "o-", "flat": "s:", "panorama": "^:", "0.99": "v--", "0.999": "D--"}


def draw(result: dict[str, Any], file: Path) -> None:
    """Draw single queries, k = 1 and k = 10."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, k in zip(figure.subplots(1, 2, sharey=True), (1, 10), strict=True):
        for key, label in COLUMNS.items():
            points = [
                (size["n"], best["microseconds"])
                for size in result["sizes"]
                if (best := best_of(find_group(size, "single", k), key)) is not None
            ]
            if points:
                width = 2.5 if key == "hiernorm" else 1.2
                n, times = zip(*points, strict=True)
                axes.plot(n, times, STYLES[key], label=label, linewidth=width, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="entries", title=f"single queries, k = {k}")
        axes.grid(True, which="major", color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("microseconds per query")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=120)

"""The picture of a report: speed-up over FAISS flat against database size."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from experiments.harness.comparison import Measurement, Report
from experiments.harness.points import RECOMMENDED
from experiments.speed.goals import TRUSTED_RECALL, fastest_rival, select

LINES = {
    "cascade": ("hiernorm cascade", "#0b6e4f"),
    "paper": ("hiernorm paper", "#6bbf9c"),
    "exhaustive": ("hiernorm exhaustive", "#8fb3a3"),
    "hnswlib": (f"hnswlib, tuned for recall {TRUSTED_RECALL}", "#c8553d"),
    "panorama": ("FAISS Panorama", "#4a6fa5"),
    "flat": ("FAISS flat", "#333333"),
    "usearch": ("USearch exact", "#8f6fb0"),
    "numpy": ("NumPy", "#a0a0a0"),
}
"""Family -> label and colour."""


LABEL_HEIGHT = 0.045
"""Height of a label as a share of the axis."""


def draw_picture(report: Report, file: Path) -> None:
    """Draw the speed-up over FAISS flat against N: single queries, k=1, one thread, K=16, a=1/8.

    Raises ImportError where matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    figure, axes = pyplot.subplots(figsize=(8.5, 5.0), dpi=150)
    ends: list[tuple[float, float, str, str]] = []
    for family, (label, colour) in LINES.items():
        sizes, speedups = _line(report, family)
        if sizes:
            axes.plot(sizes, speedups, color=colour, marker="o", markersize=4, linewidth=1.8)
            ends.append((sizes[-1], speedups[-1], label, colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    axes.yaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    bottom, top = axes.get_ylim()
    heights = _spaced([end[1] for end in ends], least_ratio=(top / bottom) ** LABEL_HEIGHT)
    for (size, _, label, colour), height in zip(ends, heights, strict=True):
        axes.annotate(
            label,
            (size, height),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.set_xlabel("entries in the database")
    axes.set_ylabel("times the speed of FAISS flat")
    axes.set_title("Single queries, one thread, k=1 (K=16, a=1/8)", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    figure.subplots_adjust(left=0.09, right=0.72, top=0.92, bottom=0.12)
    figure.savefig(file)
    pyplot.close(figure)


def _line(report: Report, family: str) -> tuple[list[int], list[float]]:
    """Sizes and speed-ups of one family, by the rival that the goals compare with."""
    points: list[Measurement] = []
    for n in sorted({row.n for row in report.measurements}):
        rows = select(report.measurements, n, RECOMMENDED, "single", 1, 1)
        best = fastest_rival(rows, family)
        if best is not None and best.speedup is not None:
            points.append(best)
    return [row.n for row in points], [row.speedup for row in points if row.speedup is not None]


def _spaced(heights: list[float], least_ratio: float) -> list[float]:
    """Move labels apart, upwards in order, so that none covers another on a log axis."""
    placed = list(heights)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] * least_ratio)
    return placed

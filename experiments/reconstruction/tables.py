"""Tables of the study: times, what is missed, models, very many keypoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.harness.page import MISSING, Rows
from experiments.reconstruction.methods import BRUTE, METHODS

Runs = Sequence[dict[str, Any]]


def match_rows(runs: Runs) -> Rows:
    """Exact matches that are missed, and others that are added, by scene and method."""
    rows = []
    for run in runs:
        exact = max(1, run["exact"])
        shares = [f"{run[kind]:,} ({run[kind] / exact:.2%})" for kind in ("missed", "added")]
        start = [run["scene"], f"{run['features']:,}", METHODS[run["method"]]]
        rows.append([*start, f"{run['pairs']}", f"{run['exact']:,}", *shares])
    return Rows(["scene", "features", "method", "pairs", "exact matches", "missed", "added"], rows)


def model_rows(runs: Runs) -> Rows:
    """What the models are like, by scene and method."""
    rows = []
    for run in runs:
        rows.append(
            [
                run["scene"],
                f"{run['features']:,}",
                METHODS[run["method"]],
                str(run["seed"]),
                f"{run['inliers']:,}",
                f"{run['registered']} of {run['photos']}",
                f"{run['points']:,}",
                f"{run['observations']:,}" if run["points"] else "-",
                f"{run['track_length']:.2f}" if run["points"] else "-",
                f"{run['error_pixels']:.3f}" if run["points"] else "-",
            ]
        )
    head = ["scene", "features", "method", "seed", "verified inliers", "registered", "points"]
    return Rows([*head, "observations", "track length", "error, pixels"], rows)


def time_rows(runs: Runs) -> Rows:
    """Milliseconds a pair by scene, features and threads; how many times faster hiernorm is."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    for run in runs:
        cells = found.setdefault((run["scene"], run["features"], run["threads"]), {})
        cells.update({m: s / run["pairs"] for m, s in run["seconds"].items()})
    rows = []
    for (scene, features, threads), cells in found.items():
        values = [f"{1e3 * cells[m]:,.0f}" if m in cells else MISSING for m in METHODS]
        ratios = [
            f"{cells[m] / cells['hiernorm']:.1f}" if {m, "hiernorm"} <= set(cells) else MISSING
            for m in ("colmap", BRUTE)
        ]
        rows.append([scene, f"{features:,}", str(threads), *values, *ratios])
    head = ["scene", "features", "threads", *(f"{name}, ms a pair" for name in METHODS.values())]
    return Rows([*head, "default / SIFT", "brute force / SIFT"], rows)


def memory_rows(runs: Runs) -> Rows:
    """Time and peak memory of a pair with very many keypoints."""
    rows = []
    for run in runs:
        start = [f"{run['keypoints']:,}", METHODS[run["method"]], str(run["threads"])]
        if "failure" in run:
            rows.append([*start, run["failure"], "", ""])
        else:
            peak = f"{run['peak_bytes'] / 2**20:,.0f} MiB"
            rows.append([*start, f"{run['seconds']:.1f} s", peak, f"{run['matches']:,}"])
    return Rows(["keypoints a photo", "method", "threads", "time", "peak memory", "matches"], rows)


ROWS: dict[str, Callable[[Runs], Rows]] = {
    "matches": match_rows,
    "models": model_rows,
    "times": time_rows,
    "memory": memory_rows,
}

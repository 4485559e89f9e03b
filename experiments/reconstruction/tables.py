"""Tables of the study: times, what is missed, models, very many keypoints."""

from __future__ import annotations

from typing import Any

from experiments.harness.page import Rows
from experiments.reconstruction.methods import METHODS


def time_rows(result: dict[str, Any]) -> Rows:
    """Milliseconds a pair by scene, features and threads."""
    rows = []
    for scene in result["scenes"]:
        for threads in sorted({row["threads"] for row in scene["times"]}):
            found = {r["method"]: r for r in scene["times"] if r["threads"] == threads}
            cells = [f"{1e3 * found[method]['seconds_per_pair']:,.0f}" for method in METHODS]
            rows.append([scene["scene"], f"{scene['features']:,}", str(threads), *cells])
    return Rows(
        ["scene", "features", "threads", *(f"{m}, ms a pair" for m in METHODS.values())], rows
    )


def missed_rows(result: dict[str, Any]) -> Rows:
    """Exact matches that are missed, and others that are added, by scene and method."""
    rows = []
    for scene in result["scenes"]:
        for method, found in scene["against_exact"].items():
            exact = max(1, found["exact"])
            shares = [f"{found[kind] / exact:.1%}" for kind in ("missed", "added")]
            start = [scene["scene"], f"{scene['features']:,}", METHODS[method]]
            rows.append([*start, f"{found['exact']:,}", *shares])
    return Rows(["scene", "features", "method", "exact matches", "missed", "added"], rows)


def model_rows(result: dict[str, Any]) -> Rows:
    """What the models are like, by scene and method."""
    rows = []
    for scene in result["scenes"]:
        for method, found in scene["models"].items():
            rows.append(
                [
                    scene["scene"],
                    f"{scene['features']:,}",
                    METHODS[method],
                    f"{found['inliers']:,}",
                    f"{found['registered']} of {scene['photos']}",
                    f"{found['points']:,}",
                    f"{found['track_length']:.2f}" if found["points"] else "-",
                    f"{found['error_pixels']:.3f}" if found["points"] else "-",
                ]
            )
    head = ["scene", "features", "method", "verified inliers", "registered", "points"]
    return Rows([*head, "track length", "error, pixels"], rows)


def memory_rows(result: dict[str, Any]) -> Rows:
    """Time and peak memory of a pair with very many keypoints."""
    rows = []
    for row in result["pairs"]:
        start = [f"{row['keypoints']:,}", METHODS[row["method"]], str(row["threads"])]
        if "failure" in row:
            rows.append([*start, row["failure"], ""])
        else:
            rows.append(
                [*start, f"{row['seconds']:.1f} s", f"{row['peak_bytes'] / 2**20:,.0f} MiB"]
            )
    return Rows(["keypoints a photo", "method", "threads", "time", "peak memory"], rows)

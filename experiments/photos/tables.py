"""Tables of photos: pairs that were matched, places that were found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table

METHODS = {
    "hardnet": "`hardnet`",
    "hn16": "`hn16`",
    "hn8": "`hn8`",
    "hardnet ratio 0.9": "`hardnet`, ratio 0.9",
    "hn16 ratio 0.9": "`hn16`, ratio 0.9",
    "hn8 ratio 0.9": "`hn8`, ratio 0.9",
    "sift cross-check": "SIFT, cross-check",
    "sift ratio 0.8": "SIFT, ratio 0.8",
}
KINDS = {
    "easy": ("all", "all", "easy"),
    "medium": ("all", "all", "medium"),
    "hard": ("all", "all", "hard"),
    "fox": ("fox", "all", "all"),
    "of these planar": ("fox", "homography", "all"),
    "monstree": ("monstree", "all", "all"),
    "all": ("all", "all", "all"),
}
"""Label -> scene, geometry and difficulty."""


@table("pairs", "photos/results/pairs.json")
def render_pairs(file: Path) -> Rows:
    """Share of pairs whose geometry was recovered, and correct inliers per pair."""
    found = {
        (row["scene"], row["geometry"], row["difficulty"], row["method"]): row
        for row in read_record(file).result["summary"]
    }
    rows = []
    for label, kind in KINDS.items():
        of: list[dict[str, Any]] = [found[(*kind, method)] for method in METHODS]
        cells = [f"{row['success_rate']:.0%}, {row['correct_inliers']:.0f}" for row in of]
        rows.append([f"{label} ({of[0]['pairs']})", *cells])
    return Rows(["pairs", *METHODS.values()], rows)


@table("evidence", "photos/results/evidence.json")
def render_evidence(file: Path) -> Rows:
    """Verdicts on pairs of photos of one place and of two."""
    summary = read_record(file).result["summary"]
    rows = [
        [
            label,
            f"{of['pairs']}",
            f"{of['convincing']}",
            f"{of['convincing_by_a_quarter']}",
            f"{of['inliers_median']:.0f}, {of['inliers_most']}",
            f"{of['most_of_what_was_needed']:.2f}",
        ]
        for label, of in (("same place", summary["same"]), ("two places", summary["foreign"]))
    ]
    return Rows(
        [
            "photos of",
            "pairs",
            "verdict: match",
            "by the former rule",
            "inliers: median, most",
            "most inliers / needed",
        ],
        rows,
    )


@table("places", "photos/results/places.json")
def render_places(file: Path) -> Rows:
    """How often the right place was found."""
    summary = read_record(file).result["summary"]
    photos, top = summary["photos"], summary["top1"]
    sets = summary["top1_of_set"]
    rows = [
        [
            "top-1, convincing photos by inliers, the others by votes",
            f"{top:.1%} ({round(top * photos)} of {photos})",
        ],
        [
            "by votes alone, by inliers alone",
            f"{summary['top1_by_votes_alone']:.1%}, {summary['top1_by_inliers_alone']:.1%}",
        ],
        [", ".join(sets), ", ".join(f"{share:.0%}" for share in sets.values())],
        [
            "best photo convincing, and of these wrong",
            f"{summary['convincing']}, {summary['convincing_and_wrong']}",
        ],
        [
            "most inliers of a photo of another place",
            f"{summary['inliers_percentiles']['wrong'][-1]:.0f}",
        ],
        ["time per query, median", f"{summary['seconds_median']:.2f} s"],
    ]
    return Rows(["", ""], rows)

"""The table of a large database."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables.registry import table


@table("scale", "scale/results/scale.json")
def render_scale(file: Path) -> Rows:
    """What it takes to build, open and search."""
    result = read_record(file).result
    build, search = result["build"], result["search"]
    ratio = build["bytes"] / (4 * result["dim"] * result["entries"])
    rows = [
        ["entries", f"{result['entries']:,}"],
        [
            "on disk",
            f"{build['bytes'] / 1e9:.2f} GB in {build['segments']} segments, {ratio:.2f} times "
            "the vectors",
        ],
        [
            "memory of the build beyond mapped files, at its peak",
            f"{_megabytes(build['peak_bytes'])}, of which {_megabytes(build['bytes_before'])} "
            "before it began",
        ],
        ["build", f"{build['seconds'] / 60:.0f} minutes"],
        [
            "open, files not in the cache; again",
            f"{_milliseconds(search['open_seconds'])}; "
            f"{_milliseconds(search['open_again_seconds'])}",
        ],
        ["first query, nothing in the cache", f"{search['first_query_seconds']:.1f} s"],
        [
            "later queries, median: first time round; second",
            f"{_milliseconds(search['cold_query_seconds_median'])}; "
            f"{_milliseconds(search['warm_query_seconds_median'])}",
        ],
        ["entries read per query", f"{search['scanned_share']:.0%}"],
        [
            "anonymous memory of the searching process",
            f"{_megabytes(search['anonymous_bytes'])}, of which "
            f"{_megabytes(search['anonymous_bytes_before'])} before it opened the database",
        ],
        [
            "load of other processes: build; search",
            f"{build['share_of_other_processes']:.0%}; {search['share_of_other_processes']:.0%}",
        ],
    ]
    return Rows(["", ""], rows)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"

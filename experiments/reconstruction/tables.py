"""Tables of the study: times, what is missed, models, very many keypoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.reconstruction.methods import METHODS
from experiments.tables.registry import table

Runs = Sequence[dict[str, Any]]


def in_order(runs: Runs, *names: str) -> Runs:
    """Runs by some of their values, not by the time when they were made."""
    methods = list(METHODS)

    def key(run: dict[str, Any]) -> list[Any]:
        return [methods.index(run[name]) if name == "method" else run[name] for name in names]

    return sorted(runs, key=key)


def match_rows(runs: Runs) -> Rows:
    """Exact matches that are missed, and others that are added, by scene and method."""
    rows = []
    for run in in_order(runs, "scene", "features", "method"):
        exact = max(1, run["exact"])
        shares = [f"{run[kind]:,} ({run[kind] / exact:.2%})" for kind in ("missed", "added")]
        start = [run["scene"], f"{run['features']:,}", METHODS[run["method"]]]
        rows.append([*start, f"{run['pairs']}", f"{run['exact']:,}", *shares])
    return Rows(["scene", "features", "method", "pairs", "exact matches", "missed", "added"], rows)


def model_rows(runs: Runs) -> Rows:
    """What the models are like, by scene and method."""
    rows = []
    for run in in_order(runs, "scene", "features", "seed", "method"):
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
    """Milliseconds of wall time for a pair: a row of every scene, a column of every method."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    others: dict[tuple[str, int, int], float] = {}
    for run in in_order(runs, "scene", "features", "threads"):
        key = run["scene"], run["features"], run["threads"]
        pair = {m: 1e3 * seconds / run["pairs"] for m, seconds in run["seconds"].items()}
        found.setdefault(key, {}).update(pair)
        others[key] = max(others.get(key, 0.0), run["other_processes"])
    methods = [method for method in METHODS if any(method in times for times in found.values())]
    rows = []
    for key, times in found.items():
        scene, features, threads = key
        cells = [f"{times[m]:,.0f}" if m in times else "" for m in methods]
        rows.append([scene, f"{features:,}", str(threads), *cells, f"{others[key]:.0%}"])
    head = ["scene", "features", "threads", *(METHODS[method] for method in methods)]
    return Rows([*head, "load of others"], rows)


def memory_rows(runs: Runs) -> Rows:
    """Time and peak memory of a pair with very many keypoints."""
    rows = []
    for run in in_order(runs, "keypoints", "method", "threads"):
        start = [f"{run['keypoints']:,}", METHODS[run["method"]], str(run["threads"])]
        if "failure" in run:
            rows.append([*start, run["failure"], "", "", ""])
        else:
            peak = f"{run['peak_bytes'] / 2**20:,.0f} MiB"
            times = [f"{run[kind]:.1f} s" for kind in ("seconds", "processor_seconds")]
            rows.append([*start, *times, peak, f"{run['matches']:,}"])
    head = ["keypoints a photo", "method", "threads", "time", "processor time", "peak memory"]
    return Rows([*head, "matches"], rows)


def grouped_rows(runs: Runs) -> Rows:
    """Processor milliseconds and products of one photo against all others: separately, at once."""
    rows = []
    for run in in_order(runs, "scene", "features"):
        cells = [run["scene"], f"{run['features']:,}", str(run["photos"] - 1)]
        for name in ("separate", "joined"):
            seconds, products = run[name]["processor_seconds"], run[name]["products"]
            cells += [f"{1e3 * seconds:,.0f}", f"{products:,}"]
        ratio = run["joined"]["processor_seconds"] / run["separate"]["processor_seconds"]
        rows.append([*cells, f"{ratio:.2f}"])
    head = ["scene", "features", "other photos", "separate passes, ms", "products"]
    return Rows([*head, "best two of all, ms", "products", "ratio of times"], rows)


ROWS: dict[str, Callable[[Runs], Rows]] = {
    "matches": match_rows,
    "models": model_rows,
    "times": time_rows,
    "grouped": grouped_rows,
    "memory": memory_rows,
}


@table("reconstruction-matches", "reconstruction/results/matches.json")
def render_matches(file: Path) -> Rows:
    """The part `matches`."""
    return match_rows(read_record(file).result["runs"])


@table("reconstruction-models", "reconstruction/results/models.json")
def render_models(file: Path) -> Rows:
    """The part `models`."""
    return model_rows(read_record(file).result["runs"])


@table("reconstruction-times", "reconstruction/results/times.json")
def render_times(file: Path) -> Rows:
    """The part `times`."""
    return time_rows(read_record(file).result["runs"])


@table("reconstruction-grouped", "reconstruction/results/grouped.json")
def render_grouped(file: Path) -> Rows:
    """The part `grouped`."""
    return grouped_rows(read_record(file).result["runs"])


@table("reconstruction-memory", "reconstruction/results/memory.json")
def render_memory(file: Path) -> Rows:
    """The part `memory`."""
    return memory_rows(read_record(file).result["runs"])

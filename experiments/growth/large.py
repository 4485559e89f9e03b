"""Growth to ten million synthetic HN entries: time, entries read, memory, build.

Vectors are those of `hiernorm.synthetic.hierarchical`. Each size is built and searched in a process
of its own, so that its peak of memory is known. Single queries, k = 1 and 10, one and two threads,
cells where they pay. Answers of some queries are compared with exhaustive search. Writes large.json
after every size; the exponents of N are fitted from 100,000 entries on.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from experiments.growth.__main__ import growth
from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group
from experiments.harness.contest import mean_work
from experiments.harness.methods import Hiernorm, Method
from experiments.harness.points import FASTEST, RECOMMENDED, Point, fraction, point_name
from experiments.harness.records import Recorder
from experiments.harness.timing import FULL, SMOKE, Effort, measure_group
from hiernorm import synthetic

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
POINTS = (RECOMMENDED, FASTEST)
GROUPS = tuple(Group("single", k, threads) for k in (1, 10) for threads in (1, 2))
QUERIES = 500
VERIFIED = 5


def measure_size(n: int, point: Point, queries: int, effort: Effort, seed: int) -> dict[str, Any]:
    """Build and search one database in this process."""
    major, alpha = point
    data = synthetic.hierarchical(n, queries, major=major, alpha=alpha, seed=seed)
    asked = data.queries
    own = Hiernorm("hiernorm", major=major, alpha=alpha)
    start = time.perf_counter()
    own.build(data.database, seed)
    build_seconds = time.perf_counter() - start
    del data  # the index has its copy
    few = asked[:VERIFIED]
    if not own.index.verify(few, own.index.search(few, 10)).ok:
        raise SystemExit("the index disagrees with exhaustive search")
    methods: list[Method] = [own]
    times = {
        group.name: 1e6 * measure_group(methods, asked, group, effort)[own.name].median
        for group in GROUPS
    }
    return {
        "n": n,
        "microseconds": times,
        "work": {f"k={k}": mean_work(own, asked, k) for k in (1, 10)},
        "bytes": own.nbytes(),
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "build_seconds": build_seconds,
    }


def fit(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Exponents of N: of the time of every group, and of the entries read."""
    exponents = {
        name: growth(rows, lambda row, name=name: row["microseconds"][name])
        for name in (group.name for group in GROUPS)
    }
    for k in ("k=1", "k=10"):
        exponents[f"scanned {k}"] = growth(rows, lambda row, k=k: row["work"][k]["scanned"])
    return exponents


def _measure_apart(arguments: list[str]) -> dict[str, Any] | None:
    """Run one size in a process of its own; None if it ends early, as without enough memory."""
    command = [sys.executable, "-m", "experiments.growth.large", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        click.echo(f"{' '.join(arguments)}: exit code {done.returncode}", err=True)
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@click.command("growth.large", cls=Experiment)
@click.option("--size", "sizes", type=int, multiple=True, help="May be repeated  [five sizes]")
@click.option("--one", nargs=2, type=int, hidden=True, help="Point and size, in this process.")
@seed_option
@smoke_option
@out_option
def main(
    sizes: tuple[int, ...], one: tuple[int, int] | None, seed: int, smoke: bool, out: Path | None
) -> None:
    """Measure growth with the number of entries, up to ten million."""
    if one is not None:
        number, n = one
        effort, queries = (SMOKE, 20) if smoke else (FULL, QUERIES)
        click.echo(json.dumps(measure_size(n, POINTS[number], queries, effort, seed)))
        return
    recorder = Recorder("growth.large", seed, {"queries": QUERIES})
    file = results_folder("growth", out, smoke) / "large.json"
    cases: list[dict[str, Any]] = []
    for number, point in enumerate(POINTS):
        rows: list[dict[str, Any]] = []
        case: dict[str, Any] = {
            "point": point_name(point),
            "major": point[0],
            "alpha_text": fraction(point[1]),
            "rows": rows,
            "failed": [],
            "growth": {},
        }
        cases.append(case)
        for n in (1_000, 2_000) if smoke else sizes or SIZES:
            arguments = ["--one", str(number), str(n), "--seed", str(seed)]
            found = _measure_apart(arguments + ["--smoke"] * smoke)
            if found is None:
                case["failed"].append(n)
                continue
            rows.append(found)
            case["growth"] = fit(rows)
            recorder.write(file, {"cases": cases})
            click.echo(f"{case['point']}, {n:,} entries are measured")
    if not any(case["rows"] for case in cases):
        raise click.ClickException("no size was measured")
    recorder.write(file, {"cases": cases})


if __name__ == "__main__":
    main()

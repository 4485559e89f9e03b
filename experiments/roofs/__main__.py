"""What bounds a search: roofs of the machine, and how near each case comes to its own.

First the roofs of one core: bytes a second from L2, L3 and memory, cache lines at random, products
of bytes and of floats. Then cases of synthetic vectors, one thread. The certificate says what a
query reads; the roofs say how long that takes at least:

- codes in order: K bytes of every entry that is scanned;
- lines at random: one for each entry that the sift leaves, one more for each that the first stage
  of tighten leaves, and the row of each that is settled;
- products of bytes: K for every entry that is scanned.

The larger of the times of bytes and of products is the bound. Queries, bounds of cells and the
ranking of results cost more and are not in it. Writes roofs.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group
from experiments.harness.contest import mean_work
from experiments.harness.methods import Hiernorm, Method, flat_method
from experiments.harness.points import RECOMMENDED, Point, point_name
from experiments.harness.records import Recorder
from experiments.harness.timing import FULL, SMOKE, Effort, measure_group
from experiments.roofs.machine import Roofs, measure_roofs
from hiernorm import synthetic
from hiernorm.reference import Float32Array

DIM = 128
LINE = 64
FLOAT = 4
QUERIES = 1_000
GROUPS = (
    Group("single", 1, 1),
    Group("single", 10, 1),
    Group("batch", 1, 1),
    Group("batch", 10, 1),
)


@dataclass(frozen=True)
class Case:
    """Vectors to search: how many, and their normalisation (None: plain)."""

    n: int
    point: Point | None

    def draw(self, queries: int, seed: int) -> tuple[Float32Array, Float32Array]:
        """Entries and queries."""
        if self.point is None:
            data = synthetic.plain(self.n, queries, dim=DIM, seed=seed)
        else:
            major, alpha = self.point
            data = synthetic.hierarchical(
                self.n, queries, dim=DIM, major=major, alpha=alpha, seed=seed
            )
        return data.database, data.queries


CASES = (
    *(Case(n, RECOMMENDED) for n in (1_000, 10_000, 100_000, 1_000_000)),
    Case(100_000, None),
)
SMOKE_CASES = (Case(600, RECOMMENDED), Case(600, None))


def bound_of(
    roofs: Roofs, n: int, major: int, work: dict[str, float], dim: int = DIM
) -> dict[str, Any]:
    """The least time of one query by what it reads and multiplies, in microseconds."""
    codes, lines = roofs.level_of(n * major), roofs.level_of(n * (dim - major))
    rows = roofs.level_of(n * dim * FLOAT)
    read = work["scanned"] * major
    row_lines = work["settled"] * dim * FLOAT / LINE
    times = {
        "codes": read / codes.read,
        "lines": (work["sifted"] + work["tightened"]) / lines.lines + row_lines / rows.lines,
        "products": read / roofs.byte_products if roofs.byte_products else 0.0,
    }
    micro = {name: 1e6 * seconds for name, seconds in times.items()}
    bytes_bound = micro["codes"] + micro["lines"]
    return {
        **micro,
        "from": codes.name,
        "bytes_read": read + LINE * (work["sifted"] + work["tightened"] + row_lines),
        "bound": max(bytes_bound, micro["products"]),
        "by": "products" if micro["products"] > bytes_bound else _larger(micro),
    }


def flat_bound(roofs: Roofs, n: int, group: Group, dim: int = DIM) -> float:
    """The least time of exhaustive float32 search: rows in order, or products in a batch."""
    products = n * dim / roofs.float_products
    if group.manner == "batch":
        return 1e6 * products
    size = n * dim * FLOAT
    return 1e6 * max(products, size / roofs.level_of(size).read)


def measure_case(
    case: Case, roofs: Roofs, queries: int, effort: Effort, seed: int
) -> list[dict[str, Any]]:
    """Time a case in every group, beside its bound."""
    database, asked = case.draw(queries, seed)
    major, alpha = (None, None) if case.point is None else case.point
    own = Hiernorm("hiernorm", major=major, alpha=alpha)
    flat = flat_method()
    methods: list[Method] = [own, flat]
    for method in methods:
        method.build(database, seed)
    rows = []
    for group in GROUPS:
        timings = measure_group(methods, asked, group, effort)
        if group.manner == "single":
            work = mean_work(own, asked, group.k)
        else:
            counts = own.hits(asked, group).certificate.work
            work = {step: float(values.mean()) for step, values in counts.items()}
        rows.append(
            {
                "case": f"{point_name(case.point)}-n{case.n}",
                "n": case.n,
                "manner": group.manner,
                "k": group.k,
                "microseconds": 1e6 * timings[own.name].median,
                "work": work,
                **bound_of(roofs, case.n, own.index.major or DIM, work),
                "flat_microseconds": 1e6 * timings[flat.name].median,
                "flat_bound": flat_bound(roofs, case.n, group),
            }
        )
    return rows


def _larger(micro: dict[str, float]) -> str:
    return "codes" if micro["codes"] >= micro["lines"] else "lines"


@click.command("roofs", cls=Experiment)
@seed_option
@smoke_option
@out_option
def main(seed: int, smoke: bool, out: Path | None) -> None:
    """Measure the roofs of this machine, and how near the cases come."""
    recorder = Recorder("roofs", seed, {"queries": QUERIES})
    roofs = measure_roofs(rounds=2 if smoke else 9)
    rows: list[dict[str, Any]] = []
    file = results_folder("roofs", out, smoke) / "roofs.json"
    for case in SMOKE_CASES if smoke else CASES:
        queries, effort = (20, SMOKE) if smoke else (QUERIES, FULL)
        rows += measure_case(case, roofs, queries, effort, seed)
        recorder.write(file, {"roofs": roofs.to_result(), "cases": rows})
        click.echo(f"{rows[-1]['case']} is measured")


if __name__ == "__main__":
    main()

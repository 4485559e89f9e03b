"""Real descriptors: FAISS flat, Panorama, hnswlib at two recalls, and hiernorm.

`--features FOLDER` is what `python -m experiments.growth.features --model hn16` made: features of
patches of photos, and of patches of other photos as queries. They are normalised as the model
normalises them. Every size is searched with k = 1 and 10, single queries and batches, one thread.
Half of the queries choose hnswlib's links and ef; the others are timed. Writes descriptors.json
after every size, and descriptors.png.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from experiments.descriptors.picture import draw
from experiments.harness.command import (
    EXISTING_FOLDER,
    Experiment,
    graphs_option,
    only_graphs_option,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group, Manner
from experiments.harness.contest import Peers, hold_contest
from experiments.harness.methods import Hiernorm
from experiments.harness.opponents import keep_graphs
from experiments.harness.points import RECOMMENDED
from experiments.harness.records import Recorder, read_record
from experiments.harness.timing import FULL, SMOKE, Effort
from hiernorm.reference import Float32Array

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MANNERS: tuple[Manner, ...] = ("single", "batch")
GROUPS = tuple(Group(manner, k, 1) for k in (1, 10) for manner in MANNERS)


def measure_size(
    database: Float32Array, queries: Float32Array, graphs: Path | None, effort: Effort, seed: int
) -> dict[str, Any]:
    """Time all methods on one database of descriptors."""
    major, alpha = RECOMMENDED
    own = [Hiernorm("hiernorm", major=major, alpha=alpha)]
    peers = Peers(folder=graphs)
    return hold_contest(database, queries, own, peers, GROUPS, effort, seed=seed)


@click.command("descriptors", cls=Experiment)
@click.option("--features", type=EXISTING_FOLDER, help="What growth.features made.")
@click.option("--size", "sizes", type=int, multiple=True, help="May be repeated  [four sizes]")
@click.option("--render", is_flag=True, help="Draw the picture of --out again, no more.")
@graphs_option
@only_graphs_option
@seed_option
@smoke_option
@out_option
def main(
    features: Path | None,
    sizes: tuple[int, ...],
    render: bool,
    graphs: Path | None,
    only_graphs: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure real descriptors at every size that the features allow."""
    folder = results_folder("descriptors", out, smoke)
    file = folder / "descriptors.json"
    if not render:
        if features is None:
            raise click.UsageError("give --features, or --render")
        major, alpha = RECOMMENDED
        rows = np.load(features / "features.npy", mmap_mode="r")
        queries = hiernorm.normalize(np.load(features / "queries.npy"), major, alpha)
        made = json.loads((features / "made.json").read_text(encoding="utf-8"))
        order = np.random.default_rng(seed).permutation(len(rows))
        recorder = Recorder("descriptors", seed, {"major": major, "alpha": alpha})
        result: dict[str, Any] = {"made": made, "sizes": []}
        wanted = [n for n in sizes or SIZES if n <= len(rows)]
        for n in [len(rows)] if smoke else wanted:
            database = hiernorm.normalize(rows[np.sort(order[:n])], major, alpha)
            if only_graphs:
                keep_graphs(database, graphs, seed=seed)
                continue
            effort = SMOKE if smoke else FULL
            result["sizes"].append(measure_size(database, queries, graphs, effort, seed))
            recorder.write(file, result)
            click.echo(f"{n:,} entries are measured")
    if only_graphs:
        return
    draw(read_record(file).result, folder / "descriptors.png")


if __name__ == "__main__":
    main()

"""Attention: keys searched by queries of another distribution, inner product, k = 100.

This is the shape of VIBE's attention sets, on which graphs lose most of their recall. The vectors
are MiniLM's own (`experiments.attention.vectors`), so the figures are not those of VIBE's sets; a
file of VIBE (`--set llama-128-ip.hdf5`) is measured instead where it is at hand. Us beside FAISS
flat, Panorama, FAISS IVF and hnswlib; half of the queries choose settings, the others are timed.
One thread, single queries and batches. Writes attention.json.
"""

from __future__ import annotations

from pathlib import Path

import click

from experiments.attention.vectors import HEADS, LAYER, WINDOW, load_vectors
from experiments.harness.command import (
    EXISTING_FILE,
    FOLDER,
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
from experiments.harness.records import Recorder
from experiments.harness.timing import FULL, SMOKE
from experiments.public.formats import read_hdf5

COUNTS = (1, 10, 100)
MANNERS: tuple[Manner, ...] = ("single", "batch")


@click.command("attention", cls=Experiment)
@click.option("--cache", type=FOLDER, help="Keeps keys and queries for the next run.")
@click.option("--set", "public", type=EXISTING_FILE, help="An HDF5 file of VIBE.")
@graphs_option
@only_graphs_option
@seed_option
@smoke_option
@out_option
def main(
    cache: Path | None,
    public: Path | None,
    graphs: Path | None,
    only_graphs: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure search of the keys of attention."""
    if public is None:
        keys, queries = load_vectors(cache, smoke, seed)
        origin = "stand-in: keys and queries of all-MiniLM-L6-v2"
    else:
        data = read_hdf5(public)
        keys, queries, origin = data.entries, data.queries, public.stem
    if only_graphs:
        keep_graphs(keys, graphs, seed=seed)
        return
    settings = {"layer": LAYER, "heads": HEADS, "window": WINDOW}
    recorder = Recorder("attention", seed, settings)
    groups = [Group(manner, k, 1) for k in COUNTS for manner in MANNERS]
    own = [Hiernorm("hiernorm"), Hiernorm("hiernorm, rows alone", engine="flat")]
    peers = Peers(lists=True, folder=graphs)
    effort = SMOKE if smoke else FULL
    found = hold_contest(keys, queries, own, peers, groups, effort, seed=seed)
    file = results_folder("attention", out, smoke) / "attention.json"
    recorder.write(file, {"origin": origin, **found})
    click.echo(f"{origin}, {found['n']:,} entries: measured")


if __name__ == "__main__":
    main()

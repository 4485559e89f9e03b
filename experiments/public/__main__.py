"""Public shapes: SIFT 128-d, GIST 960-d, OpenAI 1,536-d; us beside FAISS flat, Panorama, hnswlib.

`--sets FOLDER` has files of the sets (`sift-128-euclidean.hdf5`, ...), of any format that
`experiments.public.formats` reads. What is missing there is replaced by a stand-in, and the result
says so: SIFT by OpenCV's SIFT of the photos of `--photos FOLDER`, the others by vectors that are
drawn with a spectrum of the same kind. Single queries and batches, one thread; half of the queries
choose hnswlib's settings, the others are timed. Writes public.json after every set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.harness.command import (
    EXISTING_FOLDER,
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
from experiments.harness.structures import PeerMetric
from experiments.harness.timing import FULL, SMOKE, Effort
from experiments.harness.vectors import sample_rows, unit_rows
from experiments.plain.__main__ import SMOKE_PHOTOS, read_sift
from experiments.public.formats import PublicSet, read_set
from experiments.public.shapes import SHAPES, SIFT, Shape, find_shape
from hiernorm.reference import Float32Array

QUERIES = 2_000
WIDE = 512
"""From so many dimensions on a stand-in has fewer entries: graphs take long to build."""
WIDE_ENTRIES = 100_000
MANNERS: tuple[Manner, ...] = ("single", "batch")
SUFFIXES = (".hdf5", ".h5", ".fvecs", ".bvecs", ".parquet", ".npy")


def find_set(shape: Shape, folder: Path | None) -> PublicSet | None:
    """The set itself, where the folder has its file."""
    for suffix in SUFFIXES if folder is not None else ():
        assert folder is not None
        file = folder / f"{shape.name}{suffix}"
        if file.exists():
            queries = folder / f"{shape.name}-queries{suffix}"
            return read_set(file, queries if queries.exists() else None, shape.metric)
    return None


def make_set(
    shape: Shape,
    sets: Path | None,
    photos: Path | None,
    cache: Path | None,
    smoke: bool,
    seed: int,
) -> tuple[PublicSet, str]:
    """The set, or what stands in for it; and which of both it is."""
    found = find_set(shape, sets)
    if found is not None:
        return found, "the set"
    wanted = 1_200 if smoke else WIDE_ENTRIES if shape.dim >= WIDE else shape.entries
    queries = 60 if smoke else QUERIES
    if shape is SIFT and photos is not None:
        entries, asked = read_sift(photos, cache, SMOKE_PHOTOS if smoke else None)
        drawn = PublicSet(
            sample_rows(entries, wanted, seed), sample_rows(asked, queries, seed), shape.metric
        )
        return drawn, "stand-in: SIFT of other photos"
    return shape.draw(wanted, queries, seed), "stand-in: drawn, assumed spectrum"


def as_peers_search(data: PublicSet) -> tuple[Float32Array, Float32Array, PeerMetric]:
    """Entries, queries and metric of the peers: unit vectors where the metric is the cosine."""
    if data.metric == "cosine":
        return unit_rows(data.entries), unit_rows(data.queries), "ip"
    return data.entries, data.queries, "l2" if data.metric == "l2" else "ip"


def measure(
    shape: Shape, data: PublicSet, effort: Effort, graphs: Path | None, seed: int
) -> dict[str, Any]:
    """Time all methods on a set."""
    entries, queries, metric = as_peers_search(data)
    groups = [Group(manner, k, 1) for k in shape.counts for manner in MANNERS]
    own = [Hiernorm("hiernorm", metric=metric)]
    peers = Peers(folder=graphs)
    return hold_contest(entries, queries, own, peers, groups, effort, metric, seed)


@click.command("public", cls=Experiment)
@click.option("--sets", type=EXISTING_FOLDER, help="Has files of the sets.")
@click.option("--photos", type=EXISTING_FOLDER, help="A folder of sets of photos, for SIFT.")
@click.option("--only", multiple=True, metavar="NAME", help="May be repeated  [all shapes]")
@click.option("--cache", type=FOLDER, help="Keeps SIFT for the next run.")
@graphs_option
@only_graphs_option
@seed_option
@smoke_option
@out_option
def main(
    sets: Path | None,
    photos: Path | None,
    only: tuple[str, ...],
    cache: Path | None,
    graphs: Path | None,
    only_graphs: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure every public shape."""
    try:
        shapes = [find_shape(name) for name in only] or list(SHAPES)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    recorder = Recorder("public", seed, {"queries": QUERIES})
    file = results_folder("public", out, smoke) / "public.json"
    rows: list[dict[str, Any]] = []
    for shape in shapes:
        data, origin = make_set(shape, sets, photos, cache, smoke, seed)
        if only_graphs:
            entries, _, metric = as_peers_search(data)
            keep_graphs(entries, graphs, metric, seed)
            continue
        found = measure(shape, data, SMOKE if smoke else FULL, graphs, seed)
        rows.append({"set": shape.name, "origin": origin, **found})
        recorder.write(file, {"sets": rows})
        click.echo(f"{shape.name} ({origin}), {found['n']:,} entries: measured")


if __name__ == "__main__":
    main()

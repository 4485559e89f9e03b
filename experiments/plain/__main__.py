"""Plain vectors: what the lossless rotation and cells bring, beside FAISS flat, Panorama, hnswlib.

A set is a name with two files of vectors: a database (n, d) and queries that are not in it. They
are scaled to unit length and searched by inner product, single queries, one thread, k = 1 and 10.
`--sift PHOTOS` adds one: OpenCV's SIFT of every keypoint of the photos in the folders under PHOTOS,
queries from every tenth photo. Half of the queries choose hnswlib's settings; the others are timed.
Writes plain.json after every set. Answers of ours must be those of exhaustive search, or the run
stops.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import click
import numpy as np

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
from experiments.harness.conditions import Group
from experiments.harness.contest import Peers, hold_contest
from experiments.harness.methods import Hiernorm
from experiments.harness.opponents import keep_graphs
from experiments.harness.records import Recorder
from experiments.harness.timing import FULL, SMOKE, Effort
from experiments.harness.vectors import sample_rows, unit_rows
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array
from hiernorm.vision.photos import list_photos, read_grey

ENTRIES = 99_000
QUERIES = 2_000
EVERY = 10
SMOKE_PHOTOS = 6
GROUPS = tuple(Group(manner="single", k=k, threads=1) for k in (1, 10))


def read_sift(
    folder: Path, cache: Path | None = None, most: int | None = None
) -> tuple[Float32Array, Float32Array]:
    """SIFT vectors of all photos under the folder: the database, and queries of other photos.

    A cache keeps them for the next run, under the names and sizes of the photos. `most` takes the
    first photos only.
    """
    photos = [photo for part in sorted(folder.iterdir()) for photo in list_photos(part)][:most]
    key = json.dumps([(photo.name, photo.stat().st_size) for photo in photos])
    name = f"sift-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    file = None if cache is None else cache / name
    if file is not None and file.exists():
        kept = np.load(file, allow_pickle=False)
        return kept["entries"], kept["queries"]
    cv2 = import_extra("cv2", extra="vision")
    sift = cv2.SIFT_create(contrastThreshold=0.02)
    found = [sift.detectAndCompute(read_grey(photo), None)[1] for photo in photos]
    asking = found[EVERY // 2 :: EVERY]
    others = [rows for number, rows in enumerate(found) if number % EVERY != EVERY // 2]
    entries, queries = np.concatenate(others), np.concatenate(asking)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, entries=entries, queries=queries)
    return entries, queries


def measure(
    name: str, x: Float32Array, q: Float32Array, effort: Effort, graphs: Path | None, seed: int
) -> dict[str, Any]:
    """Build and time all methods on one set."""
    choices = {"": None, ", no cells": False, ", always cells": True}
    own = [Hiernorm(f"hiernorm{label}", cells=cells) for label, cells in choices.items()]
    found = hold_contest(x, q, own, Peers(folder=graphs), GROUPS, effort, seed=seed)
    row: dict[str, Any] = {
        "set": name,
        "n": found["n"],
        "dim": found["dim"],
        "build_seconds": found["build_seconds"],
        "choices": found["choices"],
        "major": found["majors"],
    }
    for group in found["groups"]:
        methods, work = group["methods"], found["work"][f"k={group['k']}"]
        row[f"k={group['k']}"] = {
            "microseconds": {name: method["microseconds"] for name, method in methods.items()},
            "recall": {name: method["recall"] for name, method in methods.items()},
            "work": {
                name: {step: left / len(x) for step, left in steps.items() if step != "cells"}
                for name, steps in work.items()
            },
        }
    return row


@click.command("plain", cls=Experiment)
@click.option("--set", "sets", multiple=True, metavar="NAME=X.npy,Q.npy", help="May be repeated.")
@click.option("--sift", type=EXISTING_FOLDER, help="A folder of sets of photos.")
@click.option("--entries", default=ENTRIES, show_default=True)
@click.option("--cache", type=FOLDER, help="Keeps SIFT for the next run.")
@graphs_option
@only_graphs_option
@seed_option
@smoke_option
@out_option
def main(
    sets: tuple[str, ...],
    sift: Path | None,
    entries: int,
    cache: Path | None,
    graphs: Path | None,
    only_graphs: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure every set of plain vectors."""
    found: dict[str, tuple[Float32Array, Float32Array]] = {}
    for text in sets:
        name, files = text.split("=")
        database, queries = (np.load(file) for file in files.split(","))
        found[name] = (database, queries)
    if sift is not None:
        found["SIFT"] = read_sift(sift, cache, SMOKE_PHOTOS if smoke else None)
    if not found:
        raise click.UsageError("give --set or --sift")
    recorder = Recorder("plain", seed, {"entries": entries, "queries": QUERIES})
    file = results_folder("plain", out, smoke) / "plain.json"
    rows: list[dict[str, Any]] = []
    for name, (database, queries) in found.items():
        x = unit_rows(sample_rows(database, min(entries, 1_000) if smoke else entries, seed))
        if only_graphs:
            keep_graphs(x, graphs, seed=seed)
            continue
        q = unit_rows(sample_rows(queries, QUERIES, seed))
        rows.append(measure(name, x, q, SMOKE if smoke else FULL, graphs, seed))
        click.echo(rows[-1])
        recorder.write(file, {"sets": rows})


if __name__ == "__main__":
    main()

"""Plain vectors: what the lossless rotation and cells bring, against FAISS flat and Panorama.

A set is a name with two files of vectors: a database (n, d) and queries that are not in it. They
are scaled to unit length and searched by inner product, single queries, one thread, k = 1 and 10.
`--sift PHOTOS` adds one: OpenCV's SIFT of every keypoint of the photos in the folders under PHOTOS,
queries from every tenth photo. Writes plain.json. Answers of ours must be those of exhaustive
search, or the run stops.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import (
    EXISTING_FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group
from experiments.harness.methods import Hiernorm, Method, flat_method, panorama_methods
from experiments.harness.records import Recorder
from experiments.harness.timing import QUICK, SMOKE, Effort, measure_group
from experiments.harness.vectors import sample_rows, unit_rows
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array
from hiernorm.vision.photos import list_photos, read_grey

ENTRIES = 99_000
QUERIES = 500
EVERY = 10


def read_sift(folder: Path) -> tuple[Float32Array, Float32Array]:
    """SIFT vectors of all photos under the folder: the database, and queries of other photos."""
    photos = [photo for part in sorted(folder.iterdir()) for photo in list_photos(part)]
    cv2 = import_extra("cv2", extra="vision")
    sift = cv2.SIFT_create(contrastThreshold=0.02)
    found = [sift.detectAndCompute(read_grey(photo), None)[1] for photo in photos]
    asking = found[EVERY // 2 :: EVERY]
    entries = [rows for number, rows in enumerate(found) if number % EVERY != EVERY // 2]
    return np.concatenate(entries), np.concatenate(asking)


def measure(name: str, x: Float32Array, q: Float32Array, effort: Effort) -> dict[str, Any]:
    """Build and time all methods on one set."""
    dim = x.shape[1]
    choices = {"": None, ", no cells": False, ", always cells": True}
    own = [Hiernorm(f"hiernorm{label}", cells=cells) for label, cells in choices.items()]
    methods: list[Method] = [*own, flat_method(), *panorama_methods(dim)]
    build_seconds = {}
    for method in methods:
        start = time.perf_counter()
        method.build(x, seed=0)
        build_seconds[method.name] = time.perf_counter() - start
    row: dict[str, Any] = {"set": name, "n": len(x), "dim": dim, "build_seconds": build_seconds}
    for k in (1, 10):
        group = Group(manner="single", k=k, threads=1)
        hits = {method.name: method.hits(q, group) for method in own}
        if not own[0].index.verify(q[:50], own[0].index.search(q[:50], k)).ok:
            raise SystemExit(f"{name}: the index disagrees with exhaustive search")
        for other in hits.values():
            np.testing.assert_array_equal(other.ids, hits[own[0].name].ids)
        timings = measure_group(methods, q, group, effort)
        row[f"k={k}"] = {
            "microseconds": {name: 1e6 * timing.median for name, timing in timings.items()},
            "work": {
                name: {
                    step: float(counts.mean()) / len(x)
                    for step, counts in hit.certificate.work.items()
                    if step != "cells"
                }
                for name, hit in hits.items()
            },
        }
    row["major"] = {method.name: method.index.major for method in own}
    return row


@click.command("plain", cls=Experiment)
@click.option("--set", "sets", multiple=True, metavar="NAME=X.npy,Q.npy", help="May be repeated.")
@click.option("--sift", type=EXISTING_FOLDER, help="A folder of sets of photos.")
@click.option("--entries", default=ENTRIES, show_default=True)
@seed_option
@smoke_option
@out_option
def main(
    sets: tuple[str, ...], sift: Path | None, entries: int, seed: int, smoke: bool, out: Path | None
) -> None:
    """Measure every set of plain vectors."""
    found: dict[str, tuple[Float32Array, Float32Array]] = {}
    for text in sets:
        name, files = text.split("=")
        database, queries = (np.load(file) for file in files.split(","))
        found[name] = (database, queries)
    if sift is not None:
        found["SIFT"] = read_sift(sift)
    if not found:
        raise click.UsageError("give --set or --sift")
    recorder = Recorder("plain", seed, {"entries": entries, "queries": QUERIES})
    file = results_folder("plain", out, smoke) / "plain.json"
    rows: list[dict[str, Any]] = []
    for name, (database, queries) in found.items():
        x = unit_rows(sample_rows(database, entries, seed))
        q = unit_rows(sample_rows(queries, QUERIES, seed))
        rows.append(measure(name, x, q, SMOKE if smoke else QUICK))
        click.echo(rows[-1])
        recorder.write(file, {"sets": rows})


if __name__ == "__main__":
    main()

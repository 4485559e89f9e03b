"""Plain vectors: what the lossless rotation and cells bring, against FAISS flat and Panorama.

    python benchmarks/plain.py --set patches=x.npy,q.npy --sift PHOTOS --out results/plain

A set is a name with two files of vectors: a database (n, d) and queries that are not in it. They
are scaled to unit length and searched by inner product, single queries, one thread, k = 1 and 10.
`--sift PHOTOS` adds one: OpenCV's SIFT of every keypoint of the photos in the folders under PHOTOS,
queries from every tenth photo. Writes plain.json; every answer of ours is compared with FAISS
flat's scores first.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import cv2
import faiss
import numpy as np
from indexed import Indexed

import hiernorm
from hiernorm.bench.cases import QUICK, SMOKE, Group
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.bench.measure import measure_group
from hiernorm.bench.methods import FaissFlat, FaissPanorama, Method
from hiernorm.reference import Float32Array
from hiernorm.vision.photos import list_photos, read_grey

ENTRIES = 99_000
QUERIES = 500
EVERY = 10
SCALES = {"smoke": SMOKE, "quick": QUICK}


def read_sift(folder: Path) -> tuple[Float32Array, Float32Array]:
    """SIFT vectors of all photos under the folder: the database, and queries of other photos."""
    photos = [photo for part in sorted(folder.iterdir()) for photo in list_photos(part)]
    sift = cv2.SIFT_create(contrastThreshold=0.02)
    found = [sift.detectAndCompute(read_grey(photo), None)[1] for photo in photos]
    asking = found[EVERY // 2 :: EVERY]
    entries = [rows for number, rows in enumerate(found) if number % EVERY != EVERY // 2]
    return np.concatenate(entries), np.concatenate(asking)


def thinned(rows: Float32Array, most: int) -> Float32Array:
    """At most so many rows, drawn at random, of unit length, as float32; none of length zero."""
    order = np.random.default_rng(0).permutation(len(rows))[:most]
    chosen = rows[np.sort(order)].astype(np.float64)
    norms = np.linalg.norm(chosen, axis=1, keepdims=True)
    return (chosen / norms)[norms[:, 0] > 0].astype(np.float32)


def measure(name: str, x: Float32Array, q: Float32Array, scale: str) -> dict[str, Any]:
    """Build and time all methods on one set."""
    dim = x.shape[1]
    choices = {"": None, ", no cells": False, ", always cells": True}
    own = [
        Indexed(f"hiernorm{name}", hiernorm.Index(dim, cells=cells))
        for name, cells in choices.items()
    ]
    levels = [n for n in (4, 8, 16) if dim % n == 0]
    methods: list[Method] = [*own, FaissFlat(faiss), *(FaissPanorama(faiss, n) for n in levels)]
    build_seconds = {}
    for method in methods:
        start = time.perf_counter()
        method.build(x, seed=0)
        build_seconds[method.name] = time.perf_counter() - start
    row: dict[str, Any] = {"set": name, "n": len(x), "dim": dim, "build_seconds": build_seconds}
    for k in (1, 10):
        group = Group(manner="single", k=k, threads=1)
        hits = {method.name: method.index.search(q, k, batch_size=1) for method in own}
        if not own[0].index.verify(q[:50], own[0].index.search(q[:50], k)).ok:
            raise SystemExit(f"{name}: the index disagrees with exhaustive search")
        for other in hits.values():
            np.testing.assert_array_equal(other.ids, hits[own[0].name].ids)
        timings = measure_group(methods, q, group, SCALES[scale])
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


def main() -> None:
    """Measure every set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=X.npy,Q.npy")
    parser.add_argument("--sift", type=Path, metavar="PHOTOS")
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--scale", default="quick", choices=list(SCALES))
    parser.add_argument("--out", type=Path, default=Path("results/plain"))
    options = parser.parse_args()
    sets = {}
    for text in options.set:
        name, files = text.split("=")
        database, queries = (np.load(file) for file in files.split(","))
        sets[name] = (database, queries)
    if options.sift is not None:
        sets["SIFT"] = read_sift(options.sift)
    watch = Bystanders()
    rows = []
    for name, (database, queries) in sets.items():
        x, q = thinned(database, options.entries), thinned(queries, QUERIES)
        rows.append(measure(name, x, q, options.scale))
        print(json.dumps(rows[-1]), flush=True)
    report = {"machine": describe_machine(), "others_used": watch.share(), "sets": rows}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "plain.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

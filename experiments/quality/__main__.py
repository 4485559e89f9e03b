"""Quality against time: HN descriptors, and plain ones through the lossless rotation.

    python benchmarks/quality.py --data DIR --study study/ --out results/quality

DIR has the scenes castle, brighton, fox and monstree; study/ is what features.py made. The plain
network's features are turned by LDA of castle and brighton and normalised hierarchically for each K
and alpha; plain unit vectors are searched at the same K, which changes their time and not their
quality. FPR@95 is the mean over fox and monstree, the time that of a single query among 99,000
patches, one thread, k = 1. Writes quality.json and quality.png.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from indexed import Indexed

import hiernorm
from hiernorm.bench.cases import QUICK, SMOKE, Group
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.bench.measure import measure_group
from hiernorm.learn import PhotoTour
from hiernorm.learn.measures import compute_roc, pair_distances
from hiernorm.learn.rotate import separating_directions
from hiernorm.reference import Float32Array, Float64Array
from hiernorm.reproduce.features import Body
from hiernorm.reproduce.sources import scene_source

TRAINED = ("castle", "brighton")
TESTED = ("fox", "monstree")
MAJORS = (8, 12, 16, 24, 32, 48, 64)
ALPHAS = ("1/32", "1/8", "1/4")
ENTRIES = 99_000
QUERIES = 500
SCALES = {"smoke": SMOKE, "quick": QUICK}
SINGLE = Group(manner="single", k=1, threads=1)


def units(rows: Float32Array) -> Float32Array:
    """Rows of length one."""
    wide = rows.astype(np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)


def learn_turn(body: Body, data: Path, major: int) -> Float64Array:
    """LDA of the training scenes."""
    rows, points, first = [], [], 0
    for name in TRAINED:
        scene = PhotoTour(data, name)
        rows.append(units(body.features(scene_source(scene))).astype(np.float64))
        labels = np.unique(scene.points, return_inverse=True)[1]
        points.append(labels + first)
        first += labels.max() + 1
    return separating_directions(np.concatenate(rows), np.concatenate(points), major)


def judge(body: Body, data: Path, describe: Any) -> dict[str, float]:
    """FPR@95 of descriptors on the scenes that took no part in training."""
    found = {}
    for name in TESTED:
        scene = PhotoTour(data, name)
        descriptors = describe(body.features(scene_source(scene)))
        distances = pair_distances(descriptors, scene.pairs)
        found[name] = compute_roc(distances, scene.pairs.matching).fpr95
    return found


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw FPR@95 against time, a line per family."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        x = [row["microseconds"] for row in own]
        y = [np.mean(list(row["fpr95"].values())) for row in own]
        axes.plot(x, y, "o-", label=family, markersize=4)
        for row, a, b in zip(own, x, y, strict=True):
            axes.annotate(
                str(row["major"]), (a, b), fontsize=7, xytext=(3, 3), textcoords="offset points"
            )
    axes.set(xscale="log", yscale="log", xlabel="microseconds per query among 99,000 (numbers: K)")
    axes.set_ylabel("FPR@95, mean of fox and monstree")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Judge and time every point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--study", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True, help="that the study was made with")
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--scale", default="quick", choices=list(SCALES))
    parser.add_argument("--out", type=Path, default=Path("results/quality"))
    options = parser.parse_args()
    body = Body(options.weights, options.study / "cache", 1)
    database = np.load(options.study / "features.npy", mmap_mode="r")
    chosen = np.sort(np.random.default_rng(0).permutation(len(database))[: options.entries])
    x, q = database[chosen], np.load(options.study / "queries.npy")[:QUERIES]
    watch = Bystanders()
    plain = judge(body, options.data, units)
    rows: list[dict[str, Any]] = []
    for major in MAJORS:
        turn = learn_turn(body, options.data, major).T
        indexed = [("plain, rotated", plain, hiernorm.Index(128, major=major), units)]
        for text in ALPHAS:
            alpha = float(Fraction(text))

            def describe(
                part: Float32Array, turn: Any = turn, major: int = major, alpha: float = alpha
            ) -> Float32Array:
                turned = (part.astype(np.float64) @ turn).astype(np.float32)
                return hiernorm.normalize(turned, major, alpha)

            quality = judge(body, options.data, describe)
            index = hiernorm.Index(128, major=major, alpha=alpha)
            indexed.append((f"HN, alpha = {text}", quality, index, describe))
        for family, quality, index, describe in indexed:
            method = Indexed(family, index)
            method.build(describe(x), seed=0)
            timing = measure_group([method], describe(q), SINGLE, SCALES[options.scale])[family]
            row = {"family": family, "major": major, "fpr95": quality}
            rows.append({**row, "microseconds": 1e6 * timing.median})
            print(json.dumps(rows[-1]), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    report = {"machine": describe_machine(), "others_used": watch.share(), "rows": rows}
    (options.out / "quality.json").write_text(json.dumps(report, indent=2) + "\n")
    draw(rows, options.out / "quality.png")


if __name__ == "__main__":
    main()

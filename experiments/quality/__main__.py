"""Quality against time: HN descriptors, and plain ones through the lossless rotation.

DIR has the scenes castle, brighton, fox and monstree; the study is what
`python -m experiments.growth.features` made. The plain network's features are turned by LDA of
castle and brighton and normalised hierarchically for each K and alpha; plain unit vectors are
searched at the same K, which changes their time and not their quality. FPR@95 is the mean over fox
and monstree, the time that of a single query among 99,000 patches, one thread, k = 1. Writes
quality.json and quality.png.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import SINGLE
from experiments.harness.methods import Hiernorm
from experiments.harness.patches import Backbone, scene_source, shipped_backbone
from experiments.harness.records import Recorder, read_record
from experiments.harness.timing import QUICK, SMOKE, measure_group
from experiments.harness.vectors import sample_rows, unit_rows
from hiernorm.learn import PhotoTour
from hiernorm.learn.measures import compute_roc, pair_distances
from hiernorm.learn.rotate import separating_directions
from hiernorm.reference import Float32Array, Float64Array

TRAINED = ("castle", "brighton")
TESTED = ("fox", "monstree")
MAJORS = (8, 12, 16, 24, 32, 48, 64)
ALPHAS = ("1/32", "1/8", "1/4")
ENTRIES = 99_000
QUERIES = 500
LOWEST_RATE = 1e-4
"""Of the picture, whose axis is logarithmic."""

Describe = Callable[[Float32Array], Float32Array]


def learn_turn(backbone: Backbone, data: Path, major: int) -> Float64Array:
    """LDA of the training scenes."""
    rows, points, first = [], [], 0
    for name in TRAINED:
        scene = PhotoTour(data, name)
        rows.append(unit_rows(backbone.features(scene_source(scene))).astype(np.float64))
        labels = np.unique(scene.points, return_inverse=True)[1]
        points.append(labels + first)
        first += labels.max() + 1
    return separating_directions(np.concatenate(rows), np.concatenate(points), major)


def judge(backbone: Backbone, data: Path, describe: Describe) -> dict[str, float]:
    """FPR@95 of descriptors on the scenes that took no part in training."""
    found = {}
    for name in TESTED:
        scene = PhotoTour(data, name)
        descriptors = describe(backbone.features(scene_source(scene)))
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
        y = [max(LOWEST_RATE, np.mean(list(row["fpr95"].values()))) for row in own]
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


def describe_hn(turn: Float64Array, major: int, alpha: float, rows: Float32Array) -> Float32Array:
    """Turn features and normalise them hierarchically."""
    turned = (rows.astype(np.float64) @ turn).astype(np.float32)
    return hiernorm.normalize(turned, major, alpha)


def measure_major(
    backbone: Backbone,
    data: Path,
    major: int,
    plain: dict[str, float],
    vectors: tuple[Float32Array, Float32Array],
    smoke: bool,
) -> list[dict[str, Any]]:
    """Judge and time every family at one K."""
    x, q = vectors
    turn = learn_turn(backbone, data, major).T
    families: list[tuple[Hiernorm, dict[str, float], Describe]] = [
        (Hiernorm("plain, rotated", major=major), plain, unit_rows)
    ]
    for text in ALPHAS:
        alpha = float(Fraction(text))
        made = partial(describe_hn, turn, major, alpha)
        method = Hiernorm(f"HN, alpha = {text}", major=major, alpha=alpha)
        families.append((method, judge(backbone, data, made), made))
    rows = []
    for method, quality, describe in families:
        method.build(describe(x), seed=0)
        timing = measure_group([method], describe(q), SINGLE, SMOKE if smoke else QUICK)
        microseconds = 1e6 * timing[method.name].median
        row = {"family": method.name, "major": major, "fpr95": quality}
        rows.append({**row, "microseconds": microseconds})
        click.echo(rows[-1])
    return rows


@click.command("quality", cls=Experiment)
@click.option("--data", type=EXISTING_FOLDER, help="Folder of the scenes.")
@click.option("--study", type=EXISTING_FOLDER, help="What growth.features made.")
@click.option("--weights", type=EXISTING_FILE, help="That the study was made with  [hardnet]")
@click.option("--entries", default=ENTRIES, show_default=True)
@click.option("--render", is_flag=True, help="Draw the picture of --out again, no more.")
@seed_option
@smoke_option
@out_option
def main(
    data: Path | None,
    study: Path | None,
    weights: Path | None,
    entries: int,
    render: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Judge and time HN and the lossless rotation at every K and alpha."""
    folder = results_folder("quality", out, smoke)
    file = folder / "quality.json"
    if not render:
        if data is None or study is None:
            raise click.UsageError("give --data and --study, or --render")
        recorder = Recorder("quality", seed, {"entries": entries, "queries": QUERIES})
        cache = study / "cache"
        backbone = shipped_backbone(cache, 1) if weights is None else Backbone(weights, cache, 1)
        x = sample_rows(np.load(study / "features.npy", mmap_mode="r"), entries, seed)
        q = sample_rows(np.load(study / "queries.npy"), QUERIES, seed)
        plain = judge(backbone, data, unit_rows)
        rows: list[dict[str, Any]] = []
        for major in MAJORS[:2] if smoke else MAJORS:
            rows += measure_major(backbone, data, major, plain, (x, q), smoke)
            recorder.write(file, {"rows": rows})
    draw(read_record(file).result["rows"], folder / "quality.png")


if __name__ == "__main__":
    main()

"""How far one model's FPR@95 is from another's: the ratio, with a paired bootstrap over points."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.models.options import rounds_option, scene_option, threads_option
from hiernorm.array_types import Float64Array
from hiernorm.learn import PhotoTour, load_describer
from hiernorm.learn.evaluate import Scene
from hiernorm.learn.measures import bootstrap_fpr95, compute_roc, pair_distances

FLOOR = 1.3
"""The most that was asked of `hn16`, as a multiple of the baseline's FPR@95."""


def compare_models(
    scene: Scene, distances: tuple[Float64Array, Float64Array], rounds: int, seed: int
) -> dict[str, float]:
    """Return the ratio of FPR@95 by the first distances to that by the second.

    Both are resampled by the same points in every round, so what makes a sample of points hard for
    both does not widen the interval. ``above_floor`` is the share of rounds above 1.3.
    """
    one, other = (compute_roc(d, scene.pairs.matching).fpr95 for d in distances)
    # The points that a round draws depend on the seed alone.
    first, second = (bootstrap_fpr95(d, scene.pairs, scene.points, rounds, seed) for d in distances)
    ratios = first / np.maximum(second, 1 / len(scene.pairs))
    low, high = np.percentile(ratios, [2.5, 97.5])
    return {
        "ratio": one / other,
        "low": float(low),
        "high": float(high),
        "above_floor": float(np.mean(ratios > FLOOR)),
        "false_positives": one * float((~scene.pairs.matching).sum()),
        "false_positives_other": other * float((~scene.pairs.matching).sum()),
    }


@click.command("models.ratio", cls=Experiment)
@scene_option
@click.option("--model", default="hn16", show_default=True, help="Name or .onnx file.")
@click.option("--other", default="hardnet", show_default=True, help="What it is compared with.")
@threads_option
@rounds_option
@seed_option
@smoke_option
@out_option
def main(
    scenes: tuple[str, ...],
    model: str,
    other: str,
    threads: int,
    rounds: int,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure the ratio of FPR@95 of two models on scenes, and its interval."""
    folder = results_folder("models", out, smoke)
    recorder = Recorder("models.ratio", seed, {"rounds": rounds})
    one, another = (load_describer(name, threads=threads) for name in (model, other))
    rows = []
    for path in scenes:
        scene = PhotoTour.open(path)
        distances = (
            pair_distances(one(scene.patches).descriptors, scene.pairs),
            pair_distances(another(scene.patches).descriptors, scene.pairs),
        )
        found = compare_models(scene, distances, rounds, seed)
        rows.append({"scene": scene.scene, "model": one.name, "other": another.name, **found})
        click.echo(f"{scene.scene} {found}")
    recorder.write(folder / "ratio.json", {"ratios": rows})
    click.echo(f"{folder / 'ratio.json'}")


if __name__ == "__main__":
    main()

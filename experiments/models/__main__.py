"""Shipped models beside descriptors of others: FPR@95 on scenes, and patches a second."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

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
from experiments.models.profile import share_of_layers
from hiernorm.array_types import UInt8Array
from hiernorm.learn import PhotoTour, load_describer
from hiernorm.learn.evaluate import evaluate_scenes
from hiernorm.learn.export import export_network
from hiernorm.learn.network import PatchNetwork
from hiernorm.learn.pictures import draw_rocs
from hiernorm.learn.plain import load_plain
from hiernorm.models import load_model

MODELS = ("hardnet", "hn16", "hn16-int8", "hn8")
PATCHES, ROUNDS = 1024, 5
"""Patches that a model describes in a round, and rounds."""


def measure_speed(names: Sequence[str], patches: UInt8Array, rounds: int) -> list[dict[str, Any]]:
    """Patches a second of every model with 1 and 2 threads, in turns; the median of the rounds."""
    models = {
        (name, threads): load_model(name, threads=threads) for name in names for threads in (1, 2)
    }
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in models}
    for _ in range(rounds + 1):  # the first one warms up
        for key, model in models.items():
            start = time.perf_counter()
            model.features(patches)
            seconds[key].append(time.perf_counter() - start)
    return [
        {
            "model": models[key].name,
            "threads": key[1],
            "patches_per_second": len(patches) / median(taken[1:]),
            "bytes": models[key].nbytes,
        }
        for key, taken in seconds.items()
    ]


def export_others(against: Sequence[str], folder: Path) -> list[str]:
    """Write networks of others that have our layers as ONNX: all are timed in one runtime."""
    files = []
    for label, _, weights in (name.partition("=") for name in against):
        network = load_plain(weights) if weights else None
        if isinstance(network, PatchNetwork):
            export_network(network, folder / label)
            files.append(str(folder / f"{label}.onnx"))
    return files


@click.command("models", cls=Experiment)
@scene_option
@click.option("--model", "models", multiple=True, default=MODELS, help="Name or .onnx file.")
@click.option("--against", multiple=True, help="Descriptors as `hiernorm evaluate --against`.")
@threads_option
@rounds_option
@seed_option
@smoke_option
@out_option
def main(
    scenes: tuple[str, ...],
    models: tuple[str, ...],
    against: tuple[str, ...],
    threads: int,
    rounds: int,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure FPR@95 beside others, patches a second, and where the time goes."""
    folder = results_folder("models", out, smoke)
    if smoke:
        rounds = min(rounds, 10)
    folder.mkdir(parents=True, exist_ok=True)
    opened = [PhotoTour.open(path) for path in scenes]
    describers = [load_describer(name, threads=threads) for name in (*against, *models)]
    names = [scene.scene for scene in opened]
    recorder = Recorder("models", seed, {"scenes": names, "rounds": rounds})
    results = evaluate_scenes(
        opened, describers, rounds, seed, say=lambda doing: click.echo(doing, err=True)
    )
    patches = np.concatenate([scene.patches for scene in opened])[: 64 if smoke else PATCHES]
    with tempfile.TemporaryDirectory() as temporary:
        timed = [*models, *export_others(against, Path(temporary))]
        speed = measure_speed(timed, patches, 1 if smoke else ROUNDS)
    result = {
        "quality": [asdict(found) for found in results],
        "speed": speed,
        "layers": {name: share_of_layers(name, patches) for name in models},
    }
    recorder.write(folder / "models.json", result)
    draw_rocs(results, folder / "roc.png")  # after the record, which says whether files changed
    click.echo(f"{folder / 'models.json'}")


if __name__ == "__main__":
    main()

"""Networks that were trained without certain places, measured on those places."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.models.options import few_rounds_option, scene_option, threads_option
from hiernorm.learn import PhotoTour, load_describer
from hiernorm.learn.development import DevelopmentScene
from hiernorm.learn.evaluate import evaluate_scenes


@click.command("models.development", cls=Experiment)
@scene_option
@click.option(
    "--describer",
    "describers",
    multiple=True,
    required=True,
    help="As `hiernorm evaluate --against`: a name, or NAME=FILE.",
)
@few_rounds_option
@threads_option
@seed_option
@smoke_option
@out_option
def main(
    scenes: tuple[str, ...],
    describers: tuple[str, ...],
    rounds: int,
    threads: int,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure FPR@95 and the share that search evaluates, where no network was trained.

    The patches are those of `hiernorm train --development`.
    """
    folder = results_folder("models", out, smoke)
    opened = [DevelopmentScene(PhotoTour.open(path)) for path in scenes]
    loaded = [load_describer(name, threads=threads) for name in describers]
    names = [scene.scene for scene in opened]
    recorder = Recorder("models.development", seed, {"scenes": names, "rounds": rounds})
    found = evaluate_scenes(
        opened, loaded, rounds, seed, say=lambda doing: click.echo(doing, err=True)
    )
    quality = [asdict(result) for result in found]
    for result in quality:
        del result["curve"]
    recorder.write(folder / "development.json", {"quality": quality})
    click.echo(f"{folder / 'development.json'}")


if __name__ == "__main__":
    main()

"""Candidates for a shipped network: FPR@95 on points held out, and the share left to Phase 2."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.models.measured import open_held_out, open_tracks
from experiments.models.options import (
    few_rounds_option,
    noise_option,
    places_option,
    threads_option,
)
from experiments.models.recipes import COMMON
from hiernorm.learn import load_describer
from hiernorm.learn.evaluate import evaluate_scenes

SHARES = ("lund", "conch")
"""Places on which the share left to Phase 2 is measured, over all their points."""


@click.command("models.held_out", cls=Experiment)
@places_option
@click.option("--describer", "describers", multiple=True, required=True, help="Candidates.")
@noise_option
@threads_option
@few_rounds_option
@smoke_option
@out_option
def main(
    scenes: Path,
    describers: tuple[str, ...],
    noise: bool,
    threads: int,
    rounds: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure candidates on points that training held out, and their shares on lund and conch."""
    folder = results_folder("models", out, smoke)
    loaded = [load_describer(name, threads=threads) for name in describers]
    recorder = Recorder("models.held_out", COMMON["seed"], {"rounds": rounds, "noise": noise})
    result = {}
    whole = open_tracks(scenes, SHARES, noise)
    for name, opened in (("quality", open_held_out(scenes, noise)), ("shares", whole)):
        result[name] = [asdict(r) for r in evaluate_scenes(opened, loaded, rounds)]
        for measured in result[name]:
            del measured["curve"]
            share = measured["phase2"]["without_match"] if measured["phase2"] else None
            click.echo(f"{measured['scene']} {measured['model']} {measured['fpr95']:.5f} {share}")
    recorder.write(folder / "held_out.json", result)
    click.echo(f"{folder / 'held_out.json'}")


if __name__ == "__main__":
    main()

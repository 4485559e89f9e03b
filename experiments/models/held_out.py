"""Candidates for a shipped network: FPR@95 on points held out, and the share left to Phase 2."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.models.heads import find_scenes, open_tracks
from experiments.models.options import (
    few_rounds_option,
    noise_option,
    places_option,
    threads_option,
)
from experiments.models.recipes import COMMON
from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn import TrainingSettings, load_describer, load_sets
from hiernorm.learn.augmentation import disturb_frames
from hiernorm.learn.evaluate import evaluate_scenes
from hiernorm.learn.pairs import MOST_PAIRS, Pairs, make_pairs

SHARES = ("lund", "conch")
"""Places on which the share left to Phase 2 is measured, over all their points."""


class HeldOutScene:
    """Points of a scene that training held out, with many more wrong pairs than right ones.

    Parameters
    ----------
    scene
        Its name.
    patches, points
        uint8 ``(n, 64, 64)``, and the point of each.
    """

    def __init__(self, scene: str, patches: UInt8Array, points: Int64Array) -> None:
        self.scene = scene
        self.patches = patches
        self.points = points
        self.pairs = many_pairs(points)


def many_pairs(points: Int64Array, wrong: int = MOST_PAIRS, seed: int = 0) -> Pairs:
    """Return the matching pairs of :func:`make_pairs`, and ``wrong`` others.

    A small scene has few matching pairs. As many others could not tell a rate of a thousandth.
    """
    matching = make_pairs(points, seed=seed)
    right = matching.first[matching.matching], matching.second[matching.matching]
    first, second = np.random.default_rng(seed).integers(0, len(points), size=(2, 2 * wrong))
    apart = np.flatnonzero(points[first] != points[second])[:wrong]
    return Pairs(
        np.concatenate([right[0], first[apart]]),
        np.concatenate([right[1], second[apart]]),
        np.arange(len(right[0]) + len(apart)) < len(right[0]),
    )


def open_held_out(scenes: Path, noise: bool = False) -> list[HeldOutScene]:
    """Return the points of all tracks that the runs of :mod:`experiments.models.heads` held out."""
    settings = TrainingSettings(data=find_scenes(scenes), seed=COMMON["seed"])
    held = load_sets(settings)[1]
    patches = held.tensors()[:, 0].numpy()
    if noise:
        patches = disturb_frames(patches, np.random.default_rng(0))
    found = []
    for i, path in enumerate(settings.data):
        name = Path(path).stem
        if name.endswith("-tracks"):
            rows = np.flatnonzero(held.places == i)
            found.append(HeldOutScene(name, patches[rows], held.points[rows]))
    return found


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

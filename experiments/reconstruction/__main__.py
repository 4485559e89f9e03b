"""Matching for reconstruction: COLMAP's default, its brute force, hiernorm, side by side.

The study has parts, each with a file of results. A run that is in its file is not made again, so
the study can be stopped at any time and goes on where it was. What tells the most comes first.

features   SIFT by COLMAP, other descriptors at its keypoints: databases, no results
matches    exact matches that each method misses, and others that it adds
models     what COLMAP makes of the matches
times      seconds of matching, with the reading and writing of the database
grouped    what one pass over all photos could save, against a pass for each pair
memory     seconds and peak memory of one pair with very many keypoints

Only `times` and `memory` need a quiet machine.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

import click

from experiments.harness.command import (
    EXISTING_FOLDER,
    FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.page import render_table
from experiments.reconstruction.memory import measure_pair
from experiments.reconstruction.methods import METHODS
from experiments.reconstruction.part import Part
from experiments.reconstruction.plan import PARTS, Sizes, plan_study
from experiments.reconstruction.scene import Scene
from experiments.reconstruction.tables import ROWS
from hiernorm.vision.room import write_room_photos

SCENES = ("lund", "castle", "monstree", "brighton", "fox", "conch")
FEATURES = (8_192, 16_384)
KEYPOINTS = (25_000, 50_000, 75_000, 100_000, 125_000)


@click.command("reconstruction", cls=Experiment)
@click.option("--pair", nargs=3, hidden=True, help="Method, file and threads, in this process.")
@click.option("--photos", type=EXISTING_FOLDER, help="A folder with a folder for each scene.")
@click.option("--work", type=FOLDER, help="Folder of databases and models  [a temporary one]")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="[all]")
@click.option("--scene", "scenes", multiple=True, help="May be repeated  [six scenes]")
@click.option("--features", type=int, multiple=True, help="May be repeated  [8,192 and 16,384]")
@click.option("--method", "methods", multiple=True, type=click.Choice(list(METHODS)), help="[all]")
@click.option("--keypoints", type=int, multiple=True, help="Of `memory`  [25,000 to 125,000]")
@click.option("--again", is_flag=True, help="Measure what is there again, and replace it.")
@click.option("--images", default=30, show_default=True, help="Maximum photos of a scene.")
@click.option("--side", default=2000, show_default=True, help="Longest side of a photo in pixels.")
@click.option("--timed-pairs", default=24, show_default=True, help="Pairs that are timed.")
@click.option("--brute-pairs", default=1, show_default=True, help="Pairs for COLMAP's brute force.")
@click.option("--rounds", default=3, show_default=True, help="Rounds of timing.")
@click.option("--model-seeds", default=1, show_default=True, help="Models of each method.")
@click.option("--seconds", default=3600.0, show_default=True, help="Limit of one large pair.")
@click.option("--gibibytes", default=16.0, show_default=True, help="Limit of one large pair.")
@seed_option
@smoke_option
@out_option
def main(
    pair: tuple[str, str, str] | None,
    photos: Path | None,
    work: Path | None,
    parts: tuple[str, ...],
    scenes: tuple[str, ...],
    features: tuple[int, ...],
    methods: tuple[str, ...],
    keypoints: tuple[int, ...],
    again: bool,
    images: int,
    side: int,
    timed_pairs: int,
    brute_pairs: int,
    rounds: int,
    model_seeds: int,
    seconds: float,
    gibibytes: float,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure matching and the models that come from it."""
    if pair:
        click.echo(json.dumps(measure_pair(pair[0], Path(pair[1]), int(pair[2]))))
        return
    if photos is None and not smoke:
        raise click.UsageError(
            "--photos is needed: a folder with a folder of photos for each scene"
        )
    threads: tuple[int, ...] = (1, 2)
    keypoints = keypoints or KEYPOINTS
    with tempfile.TemporaryDirectory() if work is None else nullcontext(str(work)) as folder:
        root = Path(folder)
        if smoke:
            write_room_photos(root / "photos" / "room", 4, seed)
            photos, scenes, features, side = root / "photos", ("room",), (250,), 320
            threads, keypoints, rounds = (1,), (500,), 1
        assert photos is not None
        chosen = [
            Scene(photos / name, root, count, max(features or FEATURES), images, side)
            for count in features or FEATURES
            for name in scenes or SCENES
        ]
        sizes = Sizes(
            timed_pairs, brute_pairs, rounds, model_seeds, threads, keypoints, seconds, gibibytes
        )
        results = results_folder("reconstruction", out, smoke)
        settings = {"images": images, "side": side}
        found = {name: Part(results / f"{name}.json", seed, settings, again) for name in PARTS[1:]}
        if "features" in (parts or PARTS):
            for scene in chosen:
                for method in methods or METHODS:
                    click.echo(f"features of {scene.key}, {method}", err=True)
                    scene.source(method)
        for step in plan_study(chosen, methods or tuple(METHODS), root, sizes, seed):
            if step.part in (parts or PARTS) and found[step.part].needs(step.key):
                click.echo(f"{step.part} of {step.key}", err=True)
                found[step.part].measure(step.key, step.work)
    for name, part in found.items():
        click.echo(render_table(ROWS[name](part.runs)) + "\n")


if __name__ == "__main__":
    main()

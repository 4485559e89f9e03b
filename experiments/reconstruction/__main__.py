"""Matching for reconstruction: COLMAP's default, its brute force, hiernorm, side by side.

Every scene is measured in one run: features are extracted once, the methods take turns, COLMAP
verifies and maps the matches of each. Folders of databases are kept, so that an interrupted run
goes on. Times are those of matching alone, with the reading and writing of the database.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np

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
from experiments.harness.records import Recorder
from experiments.reconstruction.features import pooled_descriptors
from experiments.reconstruction.memory import MATCHERS, measure_pair, run_pair
from experiments.reconstruction.scene import measure_scene
from experiments.reconstruction.tables import memory_rows, missed_rows, model_rows, time_rows
from hiernorm.vision.room import write_room_photos

SCENES = ("castle", "brighton", "fox", "monstree", "lund", "conch")
FEATURES = (8_192, 16_384)
KEYPOINTS = (50_000, 75_000, 100_000, 125_000)


@click.command("reconstruction", cls=Experiment)
@click.option("--pair", nargs=3, hidden=True, help="Method, file and threads, in this process.")
@click.option("--photos", type=EXISTING_FOLDER, help="A folder with a folder for each scene.")
@click.option("--scene", "scenes", multiple=True, help="May be repeated  [six scenes]")
@click.option("--features", type=int, multiple=True, help="May be repeated  [8,192 and 16,384]")
@click.option("--images", default=24, show_default=True, help="Maximum photos of a scene.")
@click.option("--side", default=2000, show_default=True, help="Longest side of a photo in pixels.")
@click.option("--brute-pairs", default=3, show_default=True, help="Pairs for COLMAP's brute force.")
@click.option("--limit", default=3600.0, show_default=True, help="Seconds of one large pair.")
@click.option("--work", type=FOLDER, help="Folder of databases and models  [a temporary one]")
@seed_option
@smoke_option
@out_option
def main(
    pair: tuple[str, str, str] | None,
    photos: Path | None,
    scenes: tuple[str, ...],
    features: tuple[int, ...],
    images: int,
    side: int,
    brute_pairs: int,
    limit: float,
    work: Path | None,
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
    settings = {"images": images, "side": side, "brute_pairs": brute_pairs, "limit": limit}
    recorder = Recorder("reconstruction", seed, settings)
    file = results_folder("reconstruction", out, smoke) / "reconstruction.json"
    result: dict[str, Any] = {"scenes": [], "pairs": []}
    with tempfile.TemporaryDirectory() if work is None else nullcontext(str(work)) as folder:
        root = Path(folder)
        if smoke:
            write_room_photos(root / "photos" / "room", 4, seed)
            photos, scenes, features = root / "photos", ("room",), (250,)
        assert photos is not None
        for scene in scenes or SCENES:
            for count in features or FEATURES:
                click.echo(f"{scene}, {count:,} features", err=True)
                measured = measure_scene(
                    photos / scene,
                    root / f"{scene}-{count}",
                    limit=count,
                    side=320 if smoke else side,
                    images=images,
                    overlap=None,
                    brute_pairs=1 if smoke else brute_pairs,
                    threads=(1,) if smoke else (1, 2),
                    rounds=1 if smoke else 3,
                )
                result["scenes"].append(measured)
                recorder.write(file, result)
        largest = root / f"{(scenes or SCENES)[0]}-{max(features or FEATURES)}" / "sift.db"
        for keypoints in (500,) if smoke else KEYPOINTS:
            sets = root / f"pair-{keypoints}.npz"
            first, second = pooled_descriptors(largest, keypoints)
            np.savez(sets, a=first, b=second)
            for method in MATCHERS:
                for threads in (1, 2):
                    if method == "hiernorm" or threads == 1:
                        click.echo(f"{keypoints:,} keypoints, {method}", err=True)
                        result["pairs"].append(run_pair(method, sets, threads, limit))
                        recorder.write(file, result)
    for rows in (time_rows, missed_rows, model_rows, memory_rows):
        click.echo(render_table(rows(result)) + "\n")


if __name__ == "__main__":
    main()

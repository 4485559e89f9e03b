"""Scenes of tracks of the training places, as the shipped models were trained on them."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.harness.command import EXISTING_FOLDER, FOLDER, Experiment
from experiments.models.places import PLACES
from hiernorm.learn.scenes.matched import TrackSettings, make_matched_scene
from hiernorm.vision.photos import list_photos

FROM_THE_AIR = ("lewis", "garfield", "seneca", "orchard")
"""Flat ground and buildings: a homography or a fundamental matrix, whichever explains more."""


def track_settings(place: str, keypoints: int) -> TrackSettings:
    """Return the settings of a place."""
    geometry = "auto" if place in FROM_THE_AIR else "fundamental"
    return TrackSettings(keypoints=keypoints, partners=12, ratio=0.8, geometry=geometry)


@click.command("models.tracks", cls=Experiment)
@click.option("--photos", type=EXISTING_FOLDER, required=True, help="Has a folder for each place.")
@click.option(
    "--keypoints", default=TrackSettings().keypoints, show_default=True, help="Of a photo, at most."
)
@click.option("--out", type=FOLDER, required=True, help="Folder of the scenes.")
def main(photos: Path, keypoints: int, out: Path) -> None:
    """Make a scene of each training place that has photos; keep the scenes that are there."""
    places = [place for place in PLACES if (photos / place).is_dir()]
    if not places:
        raise click.UsageError(f"{photos} has no folder of {', '.join(PLACES)}")
    out.mkdir(parents=True, exist_ok=True)
    for place in places:
        scene = out / f"{place}-tracks.zip"
        if not scene.exists():
            made = make_matched_scene(
                list_photos(photos / place), scene, track_settings(place, keypoints)
            )
            click.echo(f"{place}: {made.patches:,} patches of {made.points:,} points", err=True)
    click.echo(f"{out}")


if __name__ == "__main__":
    main()

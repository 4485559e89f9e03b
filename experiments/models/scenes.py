"""Training scenes: points, patches and views of each."""

from __future__ import annotations

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
from hiernorm.learn import PhotoTour


@click.command("models.scenes", cls=Experiment)
@click.argument("scenes", nargs=-1, required=True)
@smoke_option
@out_option
def main(scenes: tuple[str, ...], smoke: bool, out: Path | None) -> None:
    """Count points, patches and views of scenes."""
    folder = results_folder("models", out, smoke)
    recorder = Recorder("models.scenes", None)
    rows = []
    for path in scenes:
        scene = PhotoTour.open(path)
        _, views = np.unique(scene.points, return_counts=True)
        rows.append(
            {
                "scene": scene.scene,
                "points": len(views),
                "patches": len(scene),
                "views": float(views.mean()),
                "most_views": int(views.max()),
            }
        )
    recorder.write(folder / "scenes.json", {"scenes": rows})
    click.echo(f"{folder / 'scenes.json'}")


if __name__ == "__main__":
    main()

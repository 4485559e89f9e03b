"""Features of many real patches, for the studies of growth, plain vectors and quality.

DIR has photos in ``photos/<set>/``. Every keypoint of every photo is a patch, then the same at
further scales, then all of these turned and mirrored, until there are enough; every tenth photo
gives queries instead. Features are those of a network before its normalisation. Writes
features.npy, queries.npy and made.json, which says how many patches are of which kind. What has
been described is kept in ``cache`` beside them: an interrupted run goes on, and a larger one uses
what a smaller one made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from rich.progress import Progress

from experiments.harness.command import EXISTING_FILE, EXISTING_FOLDER, FOLDER, Experiment
from experiments.harness.patches import (
    SCALES,
    SYMMETRIES,
    Backbone,
    Source,
    find_photos,
    photo_source,
    shipped_backbone,
    spread_source,
    turned_source,
)
from hiernorm.reference import Float32Array

EVERY = 10
"""Of the photos, one in so many gives queries."""


def split_photos(data: Path) -> tuple[list[tuple[str, Path]], list[tuple[str, Path]]]:
    """Set and file of the photos that are searched, and of those that ask."""
    sets = sorted(folder.name for folder in (data / "photos").iterdir() if folder.is_dir())
    photos = [(name, photo) for name in sets for photo in find_photos(data, name)]
    asking = photos[EVERY // 2 :: EVERY]
    return [photo for photo in photos if photo not in asking], asking


def all_sources(photos: list[tuple[str, Path]], limit: int) -> Iterator[Source]:
    """Sources in the order in which they are taken."""
    base = [photo_source(file, name, limit, scale) for scale in SCALES for name, file in photos]
    yield from base
    for number in SYMMETRIES:
        for source in base:
            yield turned_source(source, number)


@click.command("growth.features", cls=Experiment)
@click.option("--data", type=EXISTING_FOLDER, required=True, help="Has photos/<set>/.")
@click.option("--entries", default=1_000_000, show_default=True)
@click.option("--keypoints", default=5790, show_default=True, help="Strongest ones of a photo.")
@click.option("--queries", default=1000, show_default=True)
@click.option("--model", default="hardnet", show_default=True, help="One that is shipped.")
@click.option("--weights", type=EXISTING_FILE, help="Of another network, instead of --model.")
@click.option("--threads", default=1, show_default=True)
@click.option("--out", type=FOLDER, required=True, help="Folder for features and cache.")
def main(
    data: Path,
    entries: int,
    keypoints: int,
    queries: int,
    model: str,
    weights: Path | None,
    threads: int,
    out: Path,
) -> None:
    """Describe patches of photos until there are enough."""
    cache = out / "cache"
    backbone = (
        shipped_backbone(cache, threads, model)
        if weights is None
        else Backbone(weights, cache, threads)
    )
    photos, asking = split_photos(data)
    each = -(-queries // len(asking))
    asked = [backbone.features(spread_source(photo, name, each)) for name, photo in asking]
    np.save(out / "queries.npy", np.concatenate(asked)[:queries])
    parts: list[Float32Array] = []
    kinds = Counter[str]()
    left = entries
    with Progress() as progress:
        task = progress.add_task("patches described", total=entries)
        for source in all_sources(photos, keypoints):
            parts.append(backbone.features(source)[:left])
            kinds[source.kind] += len(parts[-1])
            left -= len(parts[-1])
            progress.update(task, completed=entries - left)
            if left == 0:
                break
        else:
            raise click.ClickException(
                f"the photos give {entries - left:,} patches, turned ones included"
            )
    np.save(out / "features.npy", np.concatenate(parts))
    made = {
        "model": model if weights is None else weights.stem,
        "photos": len(photos),
        "queries_from": len(asking),
        "patches": dict(kinds),
    }
    (out / "made.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

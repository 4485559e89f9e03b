"""Features of many real patches, for the study of growth with N.

    python benchmarks/features.py --data DIR --entries 1000000 --out study/

DIR has photos in ``photos/<set>/``. Every keypoint of every photo is a patch, then the same at
further scales, then all of these turned and mirrored, until there are enough; every tenth photo
gives queries instead. Writes features.npy, queries.npy and made.json, which says how many patches
are of which kind. What has been described is kept in ``cache`` beside them: an interrupted run goes
on, and a larger one uses what a smaller one made.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.progress import Progress

import hiernorm.models
from hiernorm.reference import Float32Array
from hiernorm.reproduce.features import Body
from hiernorm.reproduce.sources import (
    SCALES,
    SYMMETRIES,
    Source,
    find_photos,
    photo_source,
    spread_source,
    turned_source,
)

EVERY = 10
"""Of the photos, one in so many gives queries."""
SHIPPED = Path(hiernorm.models.__file__).with_name("hardnet.safetensors")


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


def main() -> None:
    """Describe until there are enough."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--keypoints", type=int, default=5790, help="of a photo, the strongest")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--weights", type=Path, default=SHIPPED, help="of a plain network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    body = Body(options.weights, options.out / "cache", options.threads)
    photos, asking = split_photos(options.data)
    each = -(-options.queries // len(asking))
    queries = [body.features(spread_source(photo, name, each)) for name, photo in asking]
    np.save(options.out / "queries.npy", np.concatenate(queries)[: options.queries])
    parts: list[Float32Array] = []
    kinds = Counter[str]()
    left = options.entries
    with Progress() as progress:
        task = progress.add_task("patches described", total=options.entries)
        for source in all_sources(photos, options.keypoints):
            parts.append(body.features(source)[:left])
            kinds[source.kind] += len(parts[-1])
            left -= len(parts[-1])
            progress.update(task, completed=options.entries - left)
            if left == 0:
                break
        else:
            raise SystemExit(
                f"the photos give {options.entries - left:,} patches, turned ones included"
            )
    np.save(options.out / "features.npy", np.concatenate(parts))
    made = {"photos": len(photos), "queries_from": len(asking), "patches": dict(kinds)}
    (options.out / "made.json").write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()

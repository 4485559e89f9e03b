"""How often `hiernorm locate` finds the right place: every photo in turn left out and looked for.

All photos of all sets (a folder each) are described into one collection. Each photo is the query
once, with its own descriptors hidden from the search; the answer is right if the best photo is of
the query's set. Not every photo need show what another of its set does: a miss may be nobody's
fault.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import (
    EXISTING_FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import FeatureSettings, PhotoFeatures
from hiernorm.vision.ingest import find_photos, ingest_photos
from hiernorm.vision.place_recognition import locate


def ask(collection: Collection, number: int) -> dict[str, Any]:
    """Leave one photo out and look for it."""
    photo = collection.photos[number]
    ids, frames = collection.keypoints_of(number)
    query = PhotoFeatures(photo.width, photo.height, frames, collection.database.reconstruct(ids))
    start = time.perf_counter()
    found = locate(collection, query, leave_out=number)
    seconds = time.perf_counter() - start
    here = place_of(photo.name)
    names = [collection.photos[candidate.photo].name for candidate in found]
    rows: list[dict[str, Any]] = [
        {
            "photo": name,
            "votes": c.votes,
            "inliers": c.inliers,
            "matches": len(c.match.matches),
            "convincing": c.convincing,
        }
        for name, c in zip(names, found, strict=True)
    ]

    def is_best_by(key: str) -> bool:
        best = max(rows, key=lambda row: row[key], default=None)
        return best is not None and place_of(best["photo"]) == here

    return {
        "query": photo.name,
        "right": bool(names) and place_of(names[0]) == here,
        "convincing": bool(found) and found[0].convincing,
        "right_by_votes_alone": is_best_by("votes"),
        "right_by_inliers_alone": is_best_by("inliers"),
        "seconds": seconds,
        "candidates": rows,
    }


def place_of(name: str) -> str:
    """The set of a photo: the folder it is in."""
    return Path(name).parent.name


def shorten(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Names as set/photo, whatever folder the photos were in."""

    def short(name: str) -> str:
        return "/".join(Path(name).parts[-2:])

    return [
        {
            **row,
            "query": short(row["query"]),
            "candidates": [{**c, "photo": short(c["photo"])} for c in row["candidates"]],
        }
        for row in rows
    ]


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Accuracy of each set and of all, time per query, and inliers of right and wrong photos."""
    sets = sorted({place_of(row["query"]) for row in rows})
    shares: dict[str, list[float]] = {"right": [], "wrong": []}
    for row in rows:
        for candidate in row["candidates"]:
            same = place_of(candidate["photo"]) == place_of(row["query"])
            shares["right" if same else "wrong"].append(candidate["inliers"])
    return {
        "photos": len(rows),
        "top1": float(np.mean([row["right"] for row in rows])),
        "top1_by_votes_alone": float(np.mean([row["right_by_votes_alone"] for row in rows])),
        "top1_by_inliers_alone": float(np.mean([row["right_by_inliers_alone"] for row in rows])),
        "convincing": sum(row["convincing"] for row in rows),
        "convincing_and_wrong": sum(row["convincing"] and not row["right"] for row in rows),
        "top1_of_set": {
            name: float(np.mean([r["right"] for r in rows if place_of(r["query"]) == name]))
            for name in sets
        },
        "seconds_median": float(np.median([row["seconds"] for row in rows])),
        "inliers_percentiles": {
            kind: np.percentile(values, [5, 50, 95, 99, 100]).tolist() if values else []
            for kind, values in shares.items()
        },
    }


@click.command("photos.places", cls=Experiment)
@click.option("--photos", type=EXISTING_FOLDER, required=True, help="A folder of sets.")
@click.option("--model", default="hn16", show_default=True)
@click.option("--keypoints", default=1000, show_default=True, help="Keypoints of each photo.")
@click.option("--workers", default=2, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Collection for a later run.")
@seed_option
@smoke_option
@out_option
def main(
    photos: Path,
    model: str,
    keypoints: int,
    workers: int,
    keep: Path | None,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Leave every photo out in turn and look for it."""
    if smoke:
        keypoints = min(keypoints, 100)
    recorder = Recorder("photos.places", seed)
    with tempfile.TemporaryDirectory() as folder:
        path = keep or Path(folder) / "all.hn"
        start = time.perf_counter()
        outcome = ingest_photos(
            path,
            find_photos([photos]),
            FeatureSettings(model=model, limit=keypoints),
            workers=workers,
            report=lambda done, total: click.echo(f"described {done} of {total}", err=True),
        )
        described = time.perf_counter() - start
        collection = Collection.open(path)
        rows = []
        for number in range(len(collection)):
            rows.append(ask(collection, number))
            click.echo(f"{number + 1} of {len(collection)}: {rows[-1]['right']}", err=True)
        entries = len(collection.ids)
    result = {
        "model": model,
        "keypoints": keypoints,
        "entries": entries,
        "describe_seconds": described,
        "failed": outcome.failed,
        "summary": summarise(rows),
        "queries": shorten(rows),
    }
    recorder.write(results_folder("photos", out, smoke) / "places.json", result)
    click.echo(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()

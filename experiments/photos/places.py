"""How often `hiernorm locate` finds the right place: every photo in turn left out and looked for.

    python benchmarks/photo_places.py --photos PHOTOS --out results/photos

All photos of all sets (a folder each) are described into one collection. Each photo is the query
once, with its own descriptors hidden from the search; the answer is right if the best photo is of
the query's set. Not every photo need show what another of its set does: a miss may be nobody's
fault.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.bench.machine import describe_machine
from hiernorm.vision.collection import Collection
from hiernorm.vision.description import Description, Recipe
from hiernorm.vision.intake import find_photos, take_in
from hiernorm.vision.location import locate


def ask(collection: Collection, number: int) -> dict[str, Any]:
    """Leave one photo out and look for it."""
    photo = collection.photos[number]
    ids, frames = collection.keypoints_of(number)
    query = Description(photo.width, photo.height, frames, collection.database.reconstruct(ids))
    start = time.perf_counter()
    found = locate(collection, query, leave_out=number)
    seconds = time.perf_counter() - start
    here = place_of(photo.name)
    names = [collection.photos[candidate.photo].name for candidate in found]
    rows = [
        {
            "photo": name,
            "votes": c.votes,
            "inliers": c.inliers,
            "matches": len(c.pairing.matches),
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


def main() -> None:
    """Read the command line, ask for every photo, write places.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, required=True, help="a folder of sets")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="hn16")
    parser.add_argument("--keypoints", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="collection.hn that a later run starts from")
    options = parser.parse_args()
    recipe = Recipe(model=options.model, limit=options.keypoints)
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "all.hn"
        start = time.perf_counter()
        outcome = take_in(
            path,
            find_photos([options.photos]),
            recipe,
            workers=options.workers,
            report=lambda done, total: print(f"described {done} of {total}", file=sys.stderr),
        )
        described = time.perf_counter() - start
        collection = Collection.open(path)
        rows = []
        for number in range(len(collection)):
            rows.append(ask(collection, number))
            print(f"{number + 1} of {len(collection)}: {rows[-1]['right']}", file=sys.stderr)
        entries = len(collection.ids)
    report = {
        "machine": describe_machine(),
        "model": options.model,
        "keypoints": options.keypoints,
        "entries": entries,
        "describe_seconds": described,
        "failed": outcome.failed,
        "summary": summarise(rows),
        "queries": shorten(rows),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "places.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report["summary"], indent=1))


if __name__ == "__main__":
    main()

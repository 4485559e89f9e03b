"""Do the rule's verdicts hold? Pairs of photos of one set, and of two sets, matched and judged.

Photos of different sets (a folder each) show different places: each verdict "match" among such
pairs is wrong. Photos of one set need not overlap, so their share of matches is no recall; it
compares rules on the same pairs. The rule of before (15 inliers, and a quarter of the matches) is
judged beside that of :mod:`hiernorm.vision.evidence`.
"""

from __future__ import annotations

import json
import random
import tempfile
from itertools import combinations
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
from experiments.photos.places import place_of
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import FeatureSettings, PhotoFeatures
from hiernorm.vision.ingest import find_photos, ingest_photos
from hiernorm.vision.photo_match import match_photos


def judge(one: PhotoFeatures, other: PhotoFeatures) -> dict[str, Any]:
    """Match two photos and judge them by both rules."""
    found = match_photos(one, other, geometry="fundamental")
    evidence, matches = found.evidence, len(found.matches)
    return {
        "matches": matches,
        "inliers": found.geometry.count,
        "places": evidence.matches,
        "agreeing_places": evidence.inliers,
        "needed": evidence.needed,
        "convincing": evidence.convincing,
        "convincing_by_a_quarter": found.geometry.count >= max(15, matches / 4),
    }


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Verdicts and inliers of pairs of one set and of two."""
    summary = {}
    for kind in ("same", "foreign"):
        of = [row for row in rows if row["kind"] == kind]
        inliers = [row["agreeing_places"] for row in of]
        summary[kind] = {
            "pairs": len(of),
            "convincing": sum(row["convincing"] for row in of),
            "convincing_by_a_quarter": sum(row["convincing_by_a_quarter"] for row in of),
            "inliers_median": float(np.median(inliers)) if of else None,
            "inliers_most": max(inliers, default=None),
            "most_of_what_was_needed": max(
                (row["agreeing_places"] / row["needed"] for row in of if row["needed"]),
                default=None,
            ),
        }
    return summary


@click.command("photos.evidence", cls=Experiment)
@click.option("--photos", type=EXISTING_FOLDER, required=True, help="A folder of sets.")
@click.option("--pairs", default=180, show_default=True, help="Pairs of each kind, at most.")
@click.option("--keypoints", default=2000, show_default=True, help="Keypoints of each photo.")
@click.option("--workers", default=2, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Collection for a later run.")
@seed_option
@smoke_option
@out_option
def main(
    photos: Path,
    pairs: int,
    keypoints: int,
    workers: int,
    keep: Path | None,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Judge pairs of photos that do and do not match."""
    if smoke:
        pairs, keypoints = 4, 100
    recorder = Recorder("photos.evidence", seed)
    with tempfile.TemporaryDirectory() as folder:
        path = keep or Path(folder) / "all.hn"
        settings = FeatureSettings(limit=keypoints)
        ingest_photos(path, find_photos([photos]), settings, workers=workers)
        collection = Collection.open(path)
        features = []
        for number, photo in enumerate(collection.photos):
            ids, frames = collection.keypoints_of(number)
            rows = collection.database.reconstruct(ids)
            features.append(PhotoFeatures(photo.width, photo.height, frames, rows))
        names = [photo.name for photo in collection.photos]
    chosen: dict[str, list[tuple[int, int]]] = {"same": [], "foreign": []}
    for a, b in combinations(range(len(names)), 2):
        same = place_of(names[a]) == place_of(names[b])
        chosen["same" if same else "foreign"].append((a, b))
    judged = []
    for kind, all_of_kind in chosen.items():
        random.Random(seed).shuffle(all_of_kind)
        for a, b in all_of_kind[:pairs]:
            short = ["/".join(Path(names[i]).parts[-2:]) for i in (a, b)]
            judged.append({"kind": kind, "photos": short, **judge(features[a], features[b])})
    result = {"keypoints": keypoints, "summary": summarise(judged), "pairs": judged}
    recorder.write(results_folder("photos", out, smoke) / "evidence.json", result)
    click.echo(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()

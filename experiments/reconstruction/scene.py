"""One scene: its features, the times of all methods, what they miss, and the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.reconstruction.features import describe_again, extract_sift
from experiments.reconstruction.methods import METHODS, map_matches, match_pairs_by
from hiernorm.adapters.colmap import (
    ColmapDatabase,
    compare_matches,
    exhaustive_pairs,
    sequential_pairs,
)
from hiernorm.vision.photos import list_photos

ROUNDS = 3
"""Rounds of timing; methods take turns in each, and the best time counts."""


def measure_scene(
    photos: Path,
    work: Path,
    *,
    limit: int,
    side: int,
    images: int,
    overlap: int | None,
    brute_pairs: int,
    threads: tuple[int, ...],
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Measure a scene.

    Parameters
    ----------
    photos, work
        Folder of its photos; folder for databases and models.
    limit, side
        Features a photo, and the longest side of a photo in pixels.
    images
        At most this many photos, spread evenly over the scene.
    overlap
        Photos that each photo is matched with; None for all pairs.
    brute_pairs
        Pairs that COLMAP's brute force matches; it takes too long for more.
    threads
        Numbers of threads.
    rounds
        Rounds of timing.
    """
    work.mkdir(parents=True, exist_ok=True)
    files = list_photos(photos)
    chosen = np.unique(np.linspace(0, len(files) - 1, min(images, len(files))).astype(int))
    names = [files[number].relative_to(photos).as_posix() for number in chosen]
    sources = {"sift": work / "sift.db"}
    if not sources["sift"].exists():
        extract_sift(photos, names, sources["sift"], limit, side)
    for model in ("hardnet", "hn16"):
        sources[model] = work / f"{model}.db"
        if not sources[model].exists():
            describe_again(photos, sources["sift"], sources[model], model)
    with ColmapDatabase(sources["sift"]) as opened:
        stored = opened.images()
    pairs = exhaustive_pairs(stored) if overlap is None else sequential_pairs(stored, overlap)
    few = pairs[:: max(1, len(pairs) // max(1, brute_pairs))][:brute_pairs]
    rows = []
    for count in threads:
        best: dict[str, float] = {}
        for number in range(rounds):
            for method in METHODS:
                brute = method == "colmap brute force"
                if brute and number:
                    continue
                source = sources.get(method.split()[-1], sources["sift"])
                database = work / f"{method}.db"
                seconds = match_pairs_by(method, source, database, few if brute else pairs, count)
                best[method] = min(seconds, best.get(method, np.inf))
        for method, seconds in best.items():
            matched = len(few) if method == "colmap brute force" else len(pairs)
            rows.append(
                {
                    "method": method,
                    "threads": count,
                    "seconds": seconds,
                    "pairs": matched,
                    "seconds_per_pair": seconds / max(1, matched),
                }
            )
    missed = {}
    for method in ("colmap", "colmap brute force", "hiernorm"):
        found = compare_matches(work / f"{method}.db")
        missed[method] = {
            "pairs": len(found.pairs),
            "exact": found.exact,
            "missed": found.missed,
            "added": found.added,
        }
    models = {
        method: map_matches(work / f"{method}.db", photos, work / f"{method} model", pairs)
        for method in METHODS
        if method != "colmap brute force"  # it matched some pairs only, as hiernorm did
    }
    return {
        "scene": photos.name,
        "features": limit,
        "photos": len(names),
        "descriptors": [image.descriptors for image in stored],
        "times": rows,
        "against_exact": missed,
        "models": models,
    }

"""One scene at one number of features: its databases, what is missed, the models, the times."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.reconstruction.features import copy_largest, describe_again, extract_sift
from experiments.reconstruction.methods import Cost, map_matches, match_pairs_by
from hiernorm._files import replacing
from hiernorm.adapters.colmap import ColmapDatabase, compare_matches, exhaustive_pairs
from hiernorm.adapters.colmap.records import Pair
from hiernorm.vision.photos import list_photos


@dataclass(frozen=True)
class Scene:
    """A scene.

    Attributes
    ----------
    photos, work
        Folder of its photos; folder of its databases, which are kept.
    features, most
        Features a photo; the most that the study asks for, which are extracted once for all.
    images
        At most this many photos, spread evenly over the scene.
    side
        The longest side of a photo in pixels.
    """

    photos: Path
    work: Path
    features: int
    most: int
    images: int
    side: int

    @property
    def key(self) -> dict[str, Any]:
        """What names it in the results."""
        return {"scene": self.photos.name, "features": self.features}

    def source(self, method: str) -> Path:
        """The database with the features that a method matches; made if it is missing."""
        word = method.split()[-1]
        kind = word if word in ("hardnet", "hn16") else "sift"
        path = self._folder / f"{kind}.db"
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.features < self.most:  # a descriptor does not depend on the other keypoints
            copy_largest(replace(self, features=self.most).source(method), path, self.features)
        elif kind != "sift":
            describe_again(self.photos, self.source("sift"), path, kind)
        else:
            extract_sift(self.photos, self.names(), path, self.features, self.side)
        return path

    def names(self) -> list[str]:
        """The photos."""
        files = list_photos(self.photos)
        chosen = np.linspace(0, len(files) - 1, min(self.images, len(files))).astype(int)
        return [files[number].relative_to(self.photos).as_posix() for number in np.unique(chosen)]

    def pairs(self, count: int | None = None) -> list[Pair]:
        """All pairs, or some that are spread evenly over them."""
        with ColmapDatabase(self.source("sift")) as opened:
            pairs = exhaustive_pairs(opened.images())
        if count is None or count >= len(pairs):
            return pairs
        return [pairs[at] for at in np.linspace(0, len(pairs) - 1, count).astype(int)]

    def matched(self, method: str, pairs: list[Pair], threads: int) -> Path:
        """The database with the matches of a method; made if it is missing."""
        path = self._folder / f"{method}, {len(pairs)} pairs.db"
        if not path.exists():
            with replacing(path, durable=False) as fresh:
                match_pairs_by(method, self.source(method), fresh, pairs, threads)
        return path

    @property
    def _folder(self) -> Path:
        return self.work / self.photos.name / str(self.features)


def count_missed(scene: Scene, method: str, count: int | None, threads: int) -> dict[str, Any]:
    """What the matches of a method miss and add in ``count`` pairs, against exact ones."""
    found = compare_matches(scene.matched(method, scene.pairs(count), threads), threads=threads)
    with ColmapDatabase(scene.source(method)) as opened:
        sizes = [image.descriptors for image in opened.images()]
    return {
        "pairs": len(found.pairs),
        "descriptors": sizes,
        "exact": found.exact,
        "missed": found.missed,
        "added": found.added,
    }


def map_scene(scene: Scene, method: str, threads: int, seed: int) -> dict[str, Any]:
    """Verify and map the matches of a method by COLMAP; what the largest model is like."""
    pairs = scene.pairs()
    matched = scene.matched(method, pairs, threads)
    database = matched.with_name(f"{method}, seed {seed}.db")
    shutil.copy(matched, database)
    try:
        out = matched.with_name(f"{method}, seed {seed}")
        found = map_matches(database, scene.photos, out, pairs, seed)
    finally:
        database.unlink()
    return {"photos": len(scene.names()), "pairs": len(pairs), **found}


def time_methods(
    scene: Scene, methods: Sequence[str], count: int, threads: int, rounds: int
) -> dict[str, Any]:
    """Seconds of matching ``count`` pairs: methods take turns, the best of the rounds counts."""
    pairs = scene.pairs(count)
    costs: dict[str, list[Cost]] = {method: [] for method in methods}
    sources = {method: scene.source(method) for method in methods}
    database = scene.source("sift").with_name("timed.db")
    for _ in range(rounds):
        for method in methods:
            costs[method].append(match_pairs_by(method, sources[method], database, pairs, threads))
    return {
        "pairs": len(pairs),
        "rounds": rounds,
        "seconds": {method: min(c.seconds for c in of) for method, of in costs.items()},
        "processor_seconds": {
            method: min(c.processor_seconds for c in of) for method, of in costs.items()
        },
    }

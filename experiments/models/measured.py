"""What candidates are measured on: whole tracks, or the points that training held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.models.places import PLACES
from experiments.models.recipes import COMMON
from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn import PhotoTour, TrainingSettings, load_sets
from hiernorm.learn.augmentation import disturb_frames
from hiernorm.learn.development import DevelopmentScene
from hiernorm.learn.pairs import Pairs, make_pairs

KINDS = ("tracks", "views")
"""Scenes of a place: points that several photos show, and photos seen through homographies."""

MOST_PATCHES = 20_000
"""Of the tracks of a place."""

WRONG_PAIRS = 500_000
"""Pairs of different points: FPR@95 may be 0.0002, and then has 100 false positives."""


class MeasuredScene:
    """Points of a place, with many more wrong pairs than right ones.

    Parameters
    ----------
    scene
        Its name.
    patches, points
        uint8 ``(n, 64, 64)``, and the point of each.
    """

    def __init__(self, scene: str, patches: UInt8Array, points: Int64Array) -> None:
        self.scene = scene
        self.patches = patches
        self.points = points
        self.pairs = many_pairs(points)


def many_pairs(points: Int64Array, wrong: int = WRONG_PAIRS, seed: int = 0) -> Pairs:
    """Return the matching pairs of :func:`make_pairs`, and ``wrong`` others.

    A small scene has few matching pairs. As many others could not tell a rate of a thousandth.
    """
    matching = make_pairs(points, seed=seed)
    right = matching.first[matching.matching], matching.second[matching.matching]
    first, second = np.random.default_rng(seed).integers(0, len(points), size=(2, 2 * wrong))
    apart = np.flatnonzero(points[first] != points[second])[:wrong]
    return Pairs(
        np.concatenate([right[0], first[apart]]),
        np.concatenate([right[1], second[apart]]),
        np.arange(len(right[0]) + len(apart)) < len(right[0]),
    )


def find_scenes(folder: Path) -> tuple[str, ...]:
    """Return the paths of the scenes of all places that the folder has, tracks first."""
    files = [folder / f"{p}-{kind}.zip" for kind in KINDS for p in PLACES]
    return tuple(str(file) for file in files if file.exists())


def open_tracks(
    folder: Path, places: Sequence[str], noise: bool, most: int = MOST_PATCHES
) -> list[MeasuredScene]:
    """Return the tracks of places, each patch with the noise of a detector if that is asked for.

    A place has about ``most`` patches: points are drawn, the same ones each time.
    """
    found = []
    for place in places:
        kept = DevelopmentScene(PhotoTour.open(folder / f"{place}-tracks.zip"), most)
        found.append(MeasuredScene(kept.scene, disturbed(kept.patches, noise), kept.points))
    return found


def disturbed(patches: UInt8Array, noise: bool) -> UInt8Array:
    """Return patches with the noise of a detector, or as they are."""
    return disturb_frames(patches, np.random.default_rng(0)) if noise else patches


def open_held_out(scenes: Path, noise: bool = False) -> list[MeasuredScene]:
    """Return the points of all tracks that the runs of :mod:`experiments.models.heads` held out."""
    settings = TrainingSettings(data=find_scenes(scenes), seed=COMMON["seed"])
    held = load_sets(settings)[1]
    patches = disturbed(held.tensors()[:, 0].numpy(), noise)
    found = []
    for i, path in enumerate(settings.data):
        name = Path(path).stem
        if name.endswith("-tracks"):
            rows = np.flatnonzero(held.places == i)
            found.append(MeasuredScene(name, patches[rows], held.points[rows]))
    return found


def split_name(path: str) -> tuple[str, str]:
    """The place and the kind of a scene's file: `lund` and `tracks` of `lund-tracks.zip`."""
    place, _, kind = Path(path).stem.partition("-")
    return place, kind

"""The runs of the study, those that tell the most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.reconstruction.grouped import measure_grouped
from experiments.reconstruction.memory import LARGE, pooled_pair, run_pair
from experiments.reconstruction.methods import BRUTE
from experiments.reconstruction.scene import (
    Scene,
    count_missed,
    map_scene,
    time_methods,
)

PARTS = ("features", "matches", "models", "times", "grouped", "memory")


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    timed_pairs, brute_pairs
        Pairs that are timed; pairs that COLMAP's brute force matches, which takes long.
    rounds
        Rounds of timing; methods take turns in each, and the best time counts.
    model_seeds
        Models of each method, each with another seed of COLMAP's random numbers.
    threads
        Numbers of threads.
    keypoints
        Sizes of the large pairs.
    seconds, gibibytes
        What one large pair may take.
    """

    timed_pairs: int
    brute_pairs: int
    rounds: int
    model_seeds: int
    threads: tuple[int, ...]
    keypoints: tuple[int, ...]
    seconds: float
    gibibytes: float


@dataclass(frozen=True)
class Step:
    """One run: the part that it belongs to, what names it there, and the work."""

    part: str
    key: dict[str, Any]
    work: Callable[[], dict[str, Any]]


def plan_study(
    scenes: Sequence[Scene], methods: Sequence[str], root: Path, sizes: Sizes, seed: int
) -> Iterator[Step]:
    """All steps of the study.

    Parameters
    ----------
    scenes, methods
        In the order in which they are measured; methods are timed in turns.
    root
        Folder of the large pairs.
    sizes
        How much is measured.
    seed
        The first seed of the models.
    """
    most = max(sizes.threads)
    fast = [method for method in methods if method != BRUTE]
    on_sift = [method for method in ("colmap", "hiernorm", BRUTE) if method in methods]
    for scene in scenes:
        for method in on_sift:
            count = sizes.brute_pairs if method == BRUTE else None
            key = {**scene.key, "method": method}
            yield Step("matches", key, partial(count_missed, scene, method, count, most))
    for number in range(seed, seed + sizes.model_seeds):
        for scene in scenes:
            for method in fast:  # the matches of brute force are those of hiernorm
                key = {**scene.key, "method": method, "seed": number}
                yield Step("models", key, partial(map_scene, scene, method, most, number))
    for scene in scenes:
        for threads in sorted(sizes.threads, reverse=True):
            key = {**scene.key, "threads": threads}
            if fast:
                size = (sizes.timed_pairs, threads, sizes.rounds)
                yield Step(
                    "times", {**key, "methods": fast}, partial(time_methods, scene, fast, *size)
                )
            if BRUTE in methods:  # once, as it takes long
                size = (sizes.brute_pairs, threads, 1)
                yield Step(
                    "times",
                    {**key, "methods": [BRUTE]},
                    partial(time_methods, scene, [BRUTE], *size),
                )
    for scene in scenes:
        yield Step("grouped", scene.key, partial(measure_grouped, scene, sizes.rounds))
    for keypoints in sizes.keypoints:
        pair = partial(pooled_pair, scenes[-1], root, keypoints)
        for method, threads in LARGE:
            if method not in methods:
                continue
            key = {"keypoints": keypoints, "method": method, "threads": threads}
            work = partial(run_pair, method, pair, threads, sizes.seconds, sizes.gibibytes)
            yield Step("memory", key, work)

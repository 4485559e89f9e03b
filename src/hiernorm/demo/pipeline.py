"""The job of the demo: make a scene, describe its patches, find neighbours, judge the result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array, UInt8Array
from hiernorm.certificate import QueryCertificate
from hiernorm.demo.engines import Comparison, compare_engines, find_missed
from hiernorm.index import Index
from hiernorm.learn.measures import bootstrap_fpr95, compute_roc, pair_distances
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.sift import WINDOW, describe_sift
from hiernorm.models import Model
from hiernorm.scenes.maker import Recipe, make_scene

K = 5
"""Neighbours that are searched and shown."""

ROUNDS = 200
"""Of the bootstrap."""

EXAMPLES = 8
MISTAKES = 4


@dataclass(frozen=True)
class Quality:
    """How well one descriptor tells points apart.

    Attributes
    ----------
    name : str
        Of the descriptor.
    fpr95, low, high : float
        False-positive rate at 95% true positives, and its 95% interval over resampled points.
    false, true : (n,) float64
        The ROC curve.
    right : float
        Share of the queries whose nearest neighbour shows the same point.
    """

    name: str
    fpr95: float
    low: float
    high: float
    false: Float64Array
    true: Float64Array
    right: float


@dataclass(frozen=True)
class Example:
    """One query and what was found: patches (64, 64) and (k, 64, 64)."""

    query: UInt8Array
    neighbours: UInt8Array
    scores: Float64Array
    is_right: BoolArray


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo found out; the page and the terminal only show it.

    Attributes
    ----------
    photos : list of Path
        The photos behind the scene.
    points, patches, pairs : int
        Sizes of the scene.
    model : Model
        What described the patches.
    entries, queries : int
        Sizes of the database and of the set of queries.
    comparison : Comparison
        The engines: same answers, different speeds.
    missed : int
        Queries for which NumPy found a better neighbour: 0, or search is broken.
    qualities : list of Quality
        The model, then SIFT.
    examples, mistakes : list of Example
        Queries whose nearest neighbour shows the same point, and queries where it does not.
    certificate : QueryCertificate
        Of the first example.
    seconds : dict of str to float
        What each step took.
    """

    photos: list[Path]
    points: int
    patches: int
    pairs: int
    model: Model
    entries: int
    queries: int
    comparison: Comparison
    missed: int
    qualities: list[Quality]
    examples: list[Example]
    mistakes: list[Example]
    certificate: QueryCertificate
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def phase2_share(self) -> float:
        """Mean share of the entries that the major scan could not rule out.

        Of the paper's algorithm where there is an HN model, else of the cascade.
        """
        return float(self.comparison.engines[0].hits.certificate.phase2_share.mean())

    @property
    def speedup(self) -> float:
        """How many times as fast as exhaustive search the default engine is."""
        return self.comparison.exhaustive.seconds / self.comparison.best.seconds


class _Clock:
    """Says what begins, and notes how long it took."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._say = say

    def step(self, doing: str) -> None:
        self._note()
        self._doing, self._start = doing, time.perf_counter()
        self._say(doing)

    def _note(self) -> None:
        if hasattr(self, "_doing"):
            self.seconds[self._doing] = time.perf_counter() - self._start

    def stop(self) -> dict[str, float]:
        self._note()
        return self.seconds


def run_demo(
    photos: Sequence[Path],
    model: Model,
    recipe: Recipe,
    say: Callable[[str], None] = lambda doing: None,
) -> Outcome:
    """Do the whole job; one view of every point is a query, the others are the database.

    Parameters
    ----------
    photos
        What the scene is made from.
    model
        What describes the patches.
    recipe
        How the scene is made.
    say
        Hears what begins.
    """
    clock = _Clock(say)
    with tempfile.TemporaryDirectory(prefix="hiernorm-demo-") as folder:
        clock.step("making the scene")
        made = make_scene(photos, Path(folder) / "scene", recipe)
        scene = PhotoTour(folder, "scene")
        # The files go with the folder; what has been read stays.
        patches, points, _ = scene.patches, scene.points, scene.pairs

    clock.step("describing the patches")
    described = model.describe(patches)
    stored, asked = split_views(points)

    clock.step("searching with every engine")
    comparison = compare_engines(
        described[stored], described[asked], K, major=model.major, alpha=model.alpha
    )
    hits = comparison.best.hits
    clock.step("checking against NumPy")
    missed = find_missed(described[stored], described[asked], hits)

    clock.step("comparing with SIFT")
    sift = describe_sift(patches)
    plain = Index(sift.shape[1])
    plain.add(sift[stored])
    sift_ids = plain.search(sift[asked], k=1).ids
    is_right = points[stored][hits.ids] == points[asked][:, None]
    is_sift_right = points[stored][sift_ids] == points[asked][:, None]
    qualities = [
        _judge(model.name, described, scene, is_right, recipe.seed),
        _judge(f"SIFT, {WINDOW} px", sift, scene, is_sift_right, recipe.seed),
    ]

    def show(query: int) -> Example:
        neighbours = patches[stored[hits.ids[query]]]
        return Example(patches[asked[query]], neighbours, hits.scores[query], is_right[query])

    order = np.random.default_rng(recipe.seed).permutation(len(asked))
    found, wrong = order[is_right[order, 0]], order[~is_right[order, 0]]
    return Outcome(
        photos=list(photos),
        points=made.points,
        patches=made.patches,
        pairs=len(scene.pairs),
        model=model,
        entries=len(stored),
        queries=len(asked),
        comparison=comparison,
        missed=missed,
        qualities=qualities,
        examples=[show(query) for query in found[:EXAMPLES]],
        mistakes=[show(query) for query in wrong[:MISTAKES]],
        certificate=hits.certificate[int((*found, *wrong)[0])],
        seconds=clock.stop(),
    )


def _judge(
    name: str,
    descriptors: Float32Array,
    scene: PhotoTour,
    is_right: BoolArray,
    seed: int,
) -> Quality:
    """Rates over the scene's pairs, and how many of the queries have their own point first."""
    distances = pair_distances(descriptors, scene.pairs)
    roc = compute_roc(distances, scene.pairs.matching)
    samples = bootstrap_fpr95(distances, scene.pairs, scene.points, ROUNDS, seed)
    low, high = np.percentile(samples, [2.5, 97.5])
    return Quality(
        name=name,
        fpr95=roc.fpr95,
        low=float(low),
        high=float(high),
        false=roc.false_positives,
        true=roc.true_positives,
        right=float(is_right[:, 0].mean()),
    )


def split_views(points: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Positions of the patches to store, and of those to search: the last view of each point.

    Examples
    --------
    >>> stored, asked = split_views(np.array([4, 4, 4, 7, 7]))
    >>> stored.tolist(), asked.tolist()
    ([0, 1, 3], [2, 4])
    """
    is_last = np.append(points[1:] != points[:-1], True)
    return np.flatnonzero(~is_last), np.flatnonzero(is_last)

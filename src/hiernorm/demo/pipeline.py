"""The pipeline of the demo: make a scene, describe its patches, search, measure quality."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array, UInt8Array
from hiernorm.certificate import QueryCertificate
from hiernorm.demo.engines import EngineComparison, compare_engines, count_missed
from hiernorm.index import Index
from hiernorm.learn.measures import bootstrap_fpr95, compute_roc, pair_distances
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.scenes.maker import Recipe, make_scene
from hiernorm.learn.sift import WINDOW, describe_sift
from hiernorm.models import Model

K = 5
"""Number of neighbours that are searched and shown."""

ROUNDS = 200
"""Rounds of the bootstrap."""

EXAMPLES = 8
MISTAKES = 4


@dataclass(frozen=True)
class DescriptorQuality:
    """How well a descriptor distinguishes points.

    Attributes
    ----------
    name : str
        The name of the descriptor.
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
    """A query and its neighbours: patches (64, 64) and (k, 64, 64)."""

    query: UInt8Array
    neighbours: UInt8Array
    scores: Float64Array
    is_right: BoolArray


@dataclass(frozen=True)
class DemoResult:
    """The results of the demo, for the page and for the terminal.

    Attributes
    ----------
    photos : list of Path
        The photos of the scene.
    points, patches, pairs : int
        Sizes of the scene.
    model : Model
        The model that described the patches.
    entries, queries : int
        Sizes of the database and of the set of queries.
    comparison : Comparison
        The engines: the same answers at different speeds.
    missed : int
        Queries for which NumPy found a better neighbour: 0 unless search is broken.
    qualities : list of Quality
        The model, then SIFT.
    examples, mistakes : list of Example
        Queries whose nearest neighbour shows the same point, and queries where it does not.
    certificate : QueryCertificate
        The certificate of the first example.
    seconds : dict of str to float
        The time of each step.
    """

    photos: list[Path]
    points: int
    patches: int
    pairs: int
    model: Model
    entries: int
    queries: int
    comparison: EngineComparison
    missed: int
    qualities: list[DescriptorQuality]
    examples: list[Example]
    mistakes: list[Example]
    certificate: QueryCertificate
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def phase2_share(self) -> float:
        """Mean share of the entries that the major scan could not rule out.

        That of the paper's algorithm if the model is an HN model, else that of the cascade.
        """
        return float(self.comparison.engines[0].hits.certificate.phase2_share.mean())

    @property
    def speedup(self) -> float:
        """Speed of the default engine relative to exhaustive search."""
        return self.comparison.exhaustive.seconds / self.comparison.best.seconds


class _StepTimer:
    """Reports each step when it starts, and measures how long it takes."""

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
) -> DemoResult:
    """Run the demo: one view of every point is a query, the others are the database.

    Parameters
    ----------
    photos
        The photos of the scene.
    model
        The model that describes the patches.
    recipe
        How the scene is made.
    say
        Called with the name of each step when it starts.
    """
    timer = _StepTimer(say)
    with tempfile.TemporaryDirectory(prefix="hiernorm-demo-") as folder:
        timer.step("making the scene")
        made = make_scene(photos, Path(folder) / "scene", recipe)
        scene = PhotoTour(folder, "scene")
        # The folder is removed; these arrays are in memory.
        patches, points, _ = scene.patches, scene.points, scene.pairs

    timer.step("describing the patches")
    described = model.describe(patches)
    stored, asked = split_views(points)

    timer.step("searching with every engine")
    comparison = compare_engines(
        described[stored], described[asked], K, major=model.major, alpha=model.alpha
    )
    hits = comparison.best.hits
    timer.step("checking against NumPy")
    missed = count_missed(described[stored], described[asked], hits)

    timer.step("comparing with SIFT")
    sift = describe_sift(patches)
    plain = Index(sift.shape[1])
    plain.add(sift[stored])
    sift_ids = plain.search(sift[asked], k=1).ids
    is_right = points[stored][hits.ids] == points[asked][:, None]
    is_sift_right = points[stored][sift_ids] == points[asked][:, None]
    qualities = [
        _measure_quality(model.name, described, scene, is_right, recipe.seed),
        _measure_quality(f"SIFT, {WINDOW} px", sift, scene, is_sift_right, recipe.seed),
    ]

    def show(query: int) -> Example:
        neighbours = patches[stored[hits.ids[query]]]
        return Example(patches[asked[query]], neighbours, hits.scores[query], is_right[query])

    order = np.random.default_rng(recipe.seed).permutation(len(asked))
    found, wrong = order[is_right[order, 0]], order[~is_right[order, 0]]
    return DemoResult(
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
        seconds=timer.stop(),
    )


def _measure_quality(
    name: str,
    descriptors: Float32Array,
    scene: PhotoTour,
    is_right: BoolArray,
    seed: int,
) -> DescriptorQuality:
    """Error rates over the pairs of the scene, and how often the nearest is the own point."""
    distances = pair_distances(descriptors, scene.pairs)
    roc = compute_roc(distances, scene.pairs.matching)
    samples = bootstrap_fpr95(distances, scene.pairs, scene.points, ROUNDS, seed)
    low, high = np.percentile(samples, [2.5, 97.5])
    return DescriptorQuality(
        name=name,
        fpr95=roc.fpr95,
        low=float(low),
        high=float(high),
        false=roc.false_positives,
        true=roc.true_positives,
        right=float(is_right[:, 0].mean()),
    )


def split_views(points: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Positions of the patches in the database, and of the queries: the last view of each point.

    Examples
    --------
    >>> stored, asked = split_views(np.array([4, 4, 4, 7, 7]))
    >>> stored.tolist(), asked.tolist()
    ([0, 1, 3], [2, 4])
    """
    is_last = np.append(points[1:] != points[:-1], True)
    return np.flatnonzero(~is_last), np.flatnonzero(is_last)

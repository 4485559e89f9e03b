"""Evaluate descriptors on a scene: FPR@95 and its interval, ROC, Phase-2 share, major energy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.describers import Describer, PatchDescriptors
from hiernorm.learn.measures import (
    Roc,
    bootstrap_fpr95,
    compute_roc,
    major_energy,
    pair_distances,
)
from hiernorm.learn.pairs import Pairs
from hiernorm.learn.phase2 import Phase2, measure_phase2

CURVE_POINTS = 400
"""Points of a ROC curve that a report keeps."""


class Scene(Protocol):
    """What an evaluation reads of a scene, such as :class:`hiernorm.learn.PhotoTour`."""

    @property
    def scene(self) -> str:
        """The name."""

    @property
    def patches(self) -> UInt8Array:
        """``(n, 64, 64)``."""

    @property
    def points(self) -> Int64Array:
        """The point of each patch, ``(n,)``."""

    @property
    def pairs(self) -> Pairs:
        """Pairs of patches that match or do not."""


@dataclass(frozen=True)
class Result:
    """Measurements of one descriptor on one scene.

    Attributes
    ----------
    scene, model
        Names.
    pairs
        Matching and other pairs together.
    fpr95
        The false-positive rate at 95% true positives; lower is better.
    bootstrap_mean, low, high
        Mean and 95% interval of FPR@95 over resampled points.
    major, alpha
        Parameters of the normalisation, or None.
    energy
        Mean share of energy in the major before normalisation, or None.
    phase2
        Phase-2 shares of Algorithm 1 on the scene, or None for a plain descriptor.
    curve
        False- and true-positive rates, thinned.
    """

    scene: str
    model: str
    pairs: int
    fpr95: float
    bootstrap_mean: float
    low: float
    high: float
    major: int | None
    alpha: float | None
    energy: float | None
    phase2: Phase2 | None
    curve: tuple[list[float], list[float]]


def evaluate_scene(scene: Scene, describer: Describer, rounds: int = 1000, seed: int = 0) -> Result:
    """Evaluate one descriptor on one scene.

    Parameters
    ----------
    scene
        Its patches and pairs.
    describer
        See :func:`hiernorm.learn.load_describer`.
    rounds, seed
        Samples and seed of the bootstrap. The seed also chooses the queries of Phase 2.
    """
    return evaluate_descriptors(scene, describer.name, describer(scene.patches), rounds, seed)


def evaluate_descriptors(
    scene: Scene, name: str, found: PatchDescriptors, rounds: int = 1000, seed: int = 0
) -> Result:
    """Evaluate descriptors of a scene's patches that are already computed, under a name."""
    distances = pair_distances(found.descriptors, scene.pairs)
    roc = compute_roc(distances, scene.pairs.matching)
    samples = bootstrap_fpr95(distances, scene.pairs, scene.points, rounds, seed)
    low, high = np.percentile(samples, [2.5, 97.5])
    energy = phase2 = None
    if found.major is not None and found.alpha is not None:
        assert found.features is not None
        energy = major_energy(found.features, found.major)
        phase2 = measure_phase2(
            found.descriptors, scene.points, found.major, found.alpha, seed=seed
        )
    return Result(
        scene=scene.scene,
        model=name,
        pairs=len(scene.pairs),
        fpr95=roc.fpr95,
        bootstrap_mean=float(samples.mean()),
        low=float(low),
        high=float(high),
        major=found.major,
        alpha=found.alpha,
        energy=energy,
        phase2=phase2,
        curve=_thinned(roc),
    )


def evaluate_scenes(
    scenes: Sequence[Scene],
    describers: Sequence[Describer],
    rounds: int = 1000,
    seed: int = 0,
    say: Callable[[str], None] = lambda doing: None,
) -> list[Result]:
    """Evaluate every descriptor on every scene; ``say`` is called before each."""
    results = []
    for scene in scenes:
        for describer in describers:
            say(f"{describer.name} on {scene.scene}")
            results.append(evaluate_scene(scene, describer, rounds, seed))
    return results


def to_json(results: Sequence[Result], **context: Any) -> str:
    """Return the report as JSON."""
    return json.dumps({**context, "results": [asdict(r) for r in results]}, indent=1) + "\n"


def _thinned(roc: Roc) -> tuple[list[float], list[float]]:
    """Keep the points of a curve that a picture with a logarithmic axis can show."""
    false, true = roc.false_positives, roc.true_positives
    marks = np.concatenate([[0], np.geomspace(1 / len(false), 1, CURVE_POINTS)])
    rows = np.unique(np.searchsorted(false, marks, side="right") - 1)
    return false[rows].tolist(), true[rows].tolist()

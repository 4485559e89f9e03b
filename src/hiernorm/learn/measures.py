"""How well descriptors tell matching pairs from others: ROC, FPR@95, bootstrap over points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import BoolArray, Float32Array, Float64Array
from hiernorm.extras import import_extra
from hiernorm.learn.pairs import Pairs

RECALL = 0.95


@dataclass(frozen=True)
class Roc:
    """A ROC curve: rates of false and of true positives, both ``(m,)`` and ascending."""

    false_positives: Float64Array
    true_positives: Float64Array

    @property
    def fpr95(self) -> float:
        """The false-positive rate at the first threshold that accepts 95% of the matches."""
        return float(self.false_positives[np.argmax(self.true_positives >= RECALL)])


def pair_distances(descriptors: Float32Array, pairs: Pairs) -> Float64Array:
    """Return the Euclidean distance of each pair, ``(m,)``, of descriptors ``(n, d)``.

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([1]), np.array([True]))
    >>> pair_distances(np.float32([[0, 0], [3, 4]]), pairs)
    array([5.])
    """
    apart = descriptors[pairs.first].astype(np.float64) - descriptors[pairs.second]
    norms: Float64Array = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    return norms


def compute_roc(distances: Float64Array, matching: BoolArray) -> Roc:
    """Return the ROC curve of accepting pairs by distance.

    Examples
    --------
    >>> compute_roc(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, False])).fpr95
    0.0
    """
    metrics = import_extra("sklearn.metrics", extra="evaluate")
    false, true, _ = metrics.roc_curve(matching, -distances, drop_intermediate=False)
    return Roc(false, true)


def bootstrap_fpr95(
    distances: Float64Array,
    pairs: Pairs,
    points: npt.NDArray[np.int64],
    rounds: int = 1000,
    seed: int = 0,
) -> Float64Array:
    """Return FPR@95 of resampled points, ``(rounds,)``.

    Points, not pairs, are drawn with replacement, since the pairs of one point go together. A
    matching pair counts as often as its point was drawn; another pair as often as its two points
    were, multiplied.
    """
    _, labels = np.unique(points, return_inverse=True)
    count = int(labels.max()) + 1
    order = np.argsort(distances, kind="stable")
    first, second = labels[pairs.first][order], labels[pairs.second][order]
    matching = pairs.matching[order]
    # Pairs of equal distance are accepted together: a threshold may stand only at the last one.
    ends = np.append(np.diff(distances[order]) > 0, True)
    rng = np.random.default_rng(seed)
    rates = np.empty(rounds)
    for i in range(rounds):
        accepted = wrong = np.zeros(1)
        # A few points may all be left out, and no pair of a kind remain: draw again.
        while accepted[-1] == 0 or wrong[-1] == 0:
            drawn = np.bincount(rng.integers(0, count, count), minlength=count)
            weights = np.where(matching, drawn[first], drawn[first] * drawn[second])
            accepted = np.cumsum(weights * matching)
            wrong = np.cumsum(weights * ~matching)
        stop = np.argmax((accepted >= RECALL * accepted[-1]) & ends)
        rates[i] = wrong[stop] / wrong[-1]
    return rates


def major_energy(features: Float32Array, major: int) -> float:
    """Return the mean share of energy in the first ``major`` dimensions of ``(n, d)``.

    Examples
    --------
    >>> major_energy(np.float32([[1, 1], [1, 0]]), major=1)
    0.75
    """
    squares = features.astype(np.float64) ** 2
    return float((squares[:, :major].sum(axis=1) / squares.sum(axis=1)).mean())

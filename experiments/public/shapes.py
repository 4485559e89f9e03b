"""Public shapes, and vectors that stand in where a set is not at hand.

A stand-in has the size, the dimensions, the metric and a spectrum like the set's. It is clustered,
as real vectors are, and queries are drawn like entries. A table says of every row whether it is the
set or a stand-in: times on stand-ins are no times on the set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.public.formats import PublicSet
from hiernorm.reference import Float32Array, Float64Array
from hiernorm.settings import Metric

CHUNK = 20_000
"""Rows that are drawn at a time."""


@dataclass(frozen=True)
class Shape:
    """What is known of a public set.

    Attributes
    ----------
    name
        Of the set; a file of this name stands for it: ``<name>.hdf5``, or ``<name>.fvecs``,
        ``<name>.parquet`` with ``<name>-queries`` beside it.
    entries, dim, metric, counts
        Size, dimensions, metric, and the k that it is searched with.
    decay
        The eigenvalues of a stand-in fall as i^-decay.
    mean
        Share of the energy of a stand-in in one direction that all vectors have.
    clusters
        Entries per cluster of a stand-in; the deviation within a cluster is half of that between.
    unit
        Whether vectors have unit length.
    integers
        Whether numbers are whole and at least zero, as those of SIFT.
    """

    name: str
    entries: int
    dim: int
    metric: Metric
    counts: tuple[int, ...]
    decay: float
    mean: float = 0.0
    clusters: int = 50
    unit: bool = False
    integers: bool = False

    def draw(self, entries: int, queries: int, seed: int = 0) -> PublicSet:
        """Draw a stand-in: ``(entries, dim)`` and ``(queries, dim)``."""
        rng = np.random.default_rng(seed)
        spread = np.arange(1, self.dim + 1) ** (-self.decay / 2)
        spread *= np.sqrt((1 - self.mean) / np.square(spread).sum())
        turn, _ = np.linalg.qr(rng.standard_normal((self.dim, self.dim)))
        common = np.sqrt(self.mean) * turn[0]
        centres = rng.standard_normal((max(1, entries // self.clusters), self.dim)) * spread

        def rows(count: int) -> Float32Array:
            drawn = np.empty((count, self.dim), np.float32)
            for first in range(0, count, CHUNK):
                part = drawn[first : first + CHUNK]
                of = rng.integers(0, len(centres), len(part))
                noise = 0.5 * rng.standard_normal(part.shape) * spread
                part[:] = self._finish((centres[of] + noise) @ turn + common)
            return drawn

        return PublicSet(rows(entries), rows(queries), self.metric)

    def _finish(self, rows: Float64Array) -> Float64Array:
        """Give rows the values that the set's have."""
        if self.integers:  # SIFT: 0 to 255, half of them small
            return np.clip(np.rint(30 + 350 * rows), 0, 255)
        if self.unit:
            rows = np.divide(rows, np.linalg.norm(rows, axis=1, keepdims=True))
        return rows


SIFT = Shape("sift-128-euclidean", 1_000_000, 128, "l2", (1, 10, 100), 1.2, 0.5, integers=True)
SHAPES = (
    SIFT,
    Shape("gist-960-euclidean", 1_000_000, 960, "l2", (10, 100), 1.4, 0.6),
    Shape("dbpedia-openai-1536-cosine", 1_000_000, 1536, "cosine", (10, 100), 1.0, 0.7, unit=True),
)


def find_shape(name: str) -> Shape:
    """The shape of this name."""
    known = {shape.name: shape for shape in SHAPES}
    if name not in known:
        raise ValueError(f"no shape {name!r}: there are {', '.join(known)}")
    return known[name]

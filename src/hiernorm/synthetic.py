"""Seeded synthetic vectors: clustered points seen again under noise.

Two kinds, one model. `hierarchical` draws features with a decaying spectrum and normalises them
hierarchically; `plain` hides such a spectrum under a random rotation and normalises to unit
length. The constants below were set once, so that the Phase-2 shares and the recall of a graph
index come out close to those measured on real patches; docs/research/synthetic-data.md compares
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.normalize import normalize

__all__ = ["Dataset", "hierarchical", "plain"]

ENTRIES_PER_CLUSTER = 5
"""Views of one point that the database holds, on average."""

CLUSTER_SPREAD = 0.5
"""Standard deviation of a view around its centre, relative to the spread of the centres."""

NOISE_SIGMA = 0.3
"""Standard deviation of the logarithm of a query's noise: some queries are harder than others."""

MAJOR_DECAY = 0.72
"""Factor from the spread of one major dimension to that of the next."""

MINOR_DECAY = 0.95
"""The same for the minor dimensions: their spectrum is flatter, not flat."""

NOISE_MEDIAN = 1.5
"""Median noise of a query of `hierarchical`, relative to the spread of the centres."""

BLAND_SHARE = 0.06
"""Share of the points whose majors hardly differ, as those of texture-free patches do."""

BLAND_SPREAD = 0.05
"""How far the major of a bland point moves, relative to the major of any other point."""

PLAIN_LEADING = 16
"""Rotated dimensions of `plain` that hold `PLAIN_LEADING_ENERGY` of the energy."""

PLAIN_LEADING_ENERGY = 2 / 3

PLAIN_LEADING_DECAY = 0.9
"""Factor from the spread of one leading rotated dimension to that of the next."""

PLAIN_TRAILING_DECAY = 0.98
"""The same for the rotated dimensions after the leading ones."""

PLAIN_NOISE_MEDIAN = 0.7
"""Median noise of a query of `plain`, relative to the spread of the centres."""

CHUNK_ROWS = 65_536
"""Rows drawn at a time: temporary arrays stay near 100 MB whatever the size."""


@dataclass(frozen=True)
class Dataset:
    """A database, the queries to search it with, and the entry that each query was made from."""

    database: Float32Array
    queries: Float32Array
    sources: Int64Array


def hierarchical(
    n: int,
    m: int,
    *,
    dim: int = 128,
    major: int = 16,
    alpha: float = 1 / 8,
    seed: int = 0,
) -> Dataset:
    """Draw `n` database entries and `m` queries, hierarchically normalised.

    >>> data = hierarchical(1000, 10, major=16, alpha=1 / 8)
    >>> data.database.shape, data.queries.shape
    ((1000, 128), (10, 128))
    """
    if not 0 < major < dim:
        raise ValueError(f"major must lie between 0 and {dim}, got {major}")
    spread = np.concatenate([_decay(MAJOR_DECAY, major), _decay(MINOR_DECAY, dim - major)])
    rng = np.random.default_rng(seed)
    data = _draw_views(n, m, spread, NOISE_MEDIAN, rng, bland_dims=major)
    for rows in (data.database, data.queries):
        for chunk in _chunks(len(rows)):
            rows[chunk] = normalize(rows[chunk], major=major, alpha=alpha)
    return data


def plain(n: int, m: int, *, dim: int = 128, seed: int = 0) -> Dataset:
    """Draw `n` entries and `m` queries of unit length, with a spectrum hidden by a rotation.

    No coordinate stands out: two thirds of the energy lie in 16 directions that must be found.
    """
    if dim <= PLAIN_LEADING:
        raise ValueError(f"plain vectors need more than {PLAIN_LEADING} dimensions, got {dim}")
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    data = _draw_views(n, m, _plain_spread(dim), PLAIN_NOISE_MEDIAN, rng)
    for rows in (data.database, data.queries):
        for chunk in _chunks(len(rows)):
            rotated = rows[chunk].astype(np.float64) @ rotation
            rows[chunk] = rotated / np.linalg.norm(rotated, axis=1, keepdims=True)
    return data


def _draw_views(
    n: int,
    m: int,
    spread: Float32Array,
    noise_median: float,
    rng: np.random.Generator,
    bland_dims: int = 0,
) -> Dataset:
    """Draw unnormalised features: entries around cluster centres, queries around entries.

    Bland points share their leading `bland_dims` dimensions up to a little jitter.
    """
    if n < 1 or m < 1:
        raise ValueError(f"need at least one entry and one query, got n={n}, m={m}")
    dim = len(spread)
    clusters = max(1, n // ENTRIES_PER_CLUSTER)
    centres = rng.standard_normal((clusters, dim), dtype=np.float32) * spread
    bland = rng.random(clusters) < BLAND_SHARE
    # One common major, as long as a typical one, the same in every dimension.
    centres[bland, :bland_dims] = np.linalg.norm(spread[:bland_dims]) / np.sqrt(max(1, bland_dims))

    cluster_of = rng.integers(0, clusters, n)
    database = np.empty((n, dim), dtype=np.float32)
    for chunk in _chunks(n):
        members = cluster_of[chunk]
        jitter = rng.standard_normal((len(members), dim), dtype=np.float32)
        jitter *= CLUSTER_SPREAD * spread
        jitter[bland[members], :bland_dims] *= BLAND_SPREAD
        np.add(centres[members], jitter, out=database[chunk])

    sources = rng.integers(0, n, m)
    volume = noise_median * np.exp(NOISE_SIGMA * rng.standard_normal((m, 1), dtype=np.float32))
    noise = rng.standard_normal((m, dim), dtype=np.float32) * volume * spread
    noise[bland[cluster_of[sources]], :bland_dims] *= BLAND_SPREAD
    return Dataset(database, database[sources] + noise, sources)


def _plain_spread(dim: int) -> Float32Array:
    """Choose standard deviations that put `PLAIN_LEADING_ENERGY` into the leading dimensions."""
    leading = _decay(PLAIN_LEADING_DECAY, PLAIN_LEADING)
    trailing = _decay(PLAIN_TRAILING_DECAY, dim - PLAIN_LEADING)
    odds = PLAIN_LEADING_ENERGY / (1 - PLAIN_LEADING_ENERGY)
    leading *= np.sqrt(odds * np.sum(trailing**2) / np.sum(leading**2))
    return np.concatenate([leading, trailing])


def _decay(factor: float, count: int) -> Float32Array:
    return (factor ** np.arange(count)).astype(np.float32)


def _chunks(rows: int) -> list[slice]:
    return [slice(start, start + CHUNK_ROWS) for start in range(0, rows, CHUNK_ROWS)]

"""The share of a scene's descriptors that Algorithm 1 evaluates in full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array
from hiernorm.index import Index


@dataclass(frozen=True)
class Phase2:
    """Mean shares of the database that Phase 2 evaluates.

    Attributes
    ----------
    entries, queries
        Sizes of the database, and of each kind of query.
    with_match, without_match
        Of queries whose point the database has, and of queries whose point it has not.
    """

    entries: int
    queries: int
    with_match: float
    without_match: float


def measure_phase2(
    descriptors: Float32Array,
    points: npt.NDArray[np.int64],
    major: int,
    alpha: float,
    others: Float32Array | None = None,
    seed: int = 0,
) -> Phase2:
    """Search a scene's points in a database that has half of them.

    One patch of every point is a query. The other patches of half of the points are the database;
    of the other half, none: these queries have no true match there.

    Parameters
    ----------
    descriptors, points
        Normalised ``(n, d)``, and the point of each.
    major, alpha
        Of the normalisation.
    others
        Descriptors ``(m, d)`` of further patches for the database.
    seed
        Of the choice of points and queries.

    Examples
    --------
    >>> import hiernorm
    >>> rows = np.random.default_rng(0).standard_normal((400, 32))
    >>> x = hiernorm.normalize(rows, major=8, alpha=1 / 8)
    >>> measure_phase2(x, np.arange(400) // 4, major=8, alpha=1 / 8).entries
    150
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(points))
    ids, queries, counts = np.unique(points[order], return_index=True, return_counts=True)
    queries = order[queries]
    seen_often = counts >= 2
    ids, queries = ids[seen_often], queries[seen_often]
    half = len(ids) // 2
    if half < 1:
        raise ValueError(f"needs two points with two patches each, got {len(ids)}")
    chosen = rng.permutation(len(ids))[: 2 * half]
    known, unknown = chosen[:half], chosen[half:]
    stored = np.isin(points, ids[known])
    stored[queries] = False
    database = descriptors[stored]
    if others is not None:
        database = np.concatenate([database, others])
    index = Index(descriptors.shape[1], major=major, alpha=alpha, engine="paper")
    index.add(database)
    shares = [
        float(index.search(descriptors[queries[group]], k=1).certificate.phase2_share.mean())
        for group in (known, unknown)
    ]
    return Phase2(len(database), half, *shares)

"""The paper's engine evaluates what Algorithm 1 evaluates: float32 scores, index order."""

from __future__ import annotations

import numpy as np
import pytest

import hiernorm
from hiernorm import reference, synthetic
from hiernorm.array_types import Float32Array

MAJOR = 8
ALPHA = 1 / 8
ROUNDING = 1e-5
"""More than the slack that the engine adds to alpha for these vectors."""


def stored_scores(q: Float32Array, x: Float32Array) -> Float32Array:
    """Phase 1: products and sums in float32, dimension by dimension."""
    scores = np.zeros(len(x), np.float32)
    for j in range(MAJOR):
        scores = scores + q[j] * x[:, j]
    return scores


def evaluated(q: Float32Array, x: Float32Array, k: int, share: float) -> int:
    """Entries that phase 2 and the k best majors evaluate, if the minor may add ``share``."""
    s = stored_scores(q, x)
    full = reference.canonical_scores(q, x)
    first = np.lexsort((np.arange(len(x)), -s))[:k]
    best = sorted(full[first])
    count = len(first)
    others = np.ones(len(x), bool)
    others[first] = False
    for i in np.flatnonzero(others):
        if float(s[i]) + share < best[0]:
            continue
        count += 1
        best = sorted([*best, full[i]])[1:]
    return count


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("entries", [1, 100, 2_048, 5_000])
def test_paper_evaluates_what_algorithm_1_evaluates(entries: int, k: int) -> None:
    data = synthetic.hierarchical(entries, 20, dim=32, major=MAJOR, alpha=ALPHA, seed=1)
    index = hiernorm.Index(32, major=MAJOR, alpha=ALPHA, engine="paper")
    index.add(data.database)
    k = min(k, entries)
    hits = index.search(data.queries, k=k)
    for q, ids, scores, count in zip(
        data.queries, hits.ids, hits.scores, hits.certificate.work["settled"], strict=True
    ):
        true_ids, true_scores = reference.exhaustive_search(q, data.database, np.arange(entries), k)
        np.testing.assert_array_equal(ids, true_ids)
        np.testing.assert_array_equal(scores, true_scores)
        least = evaluated(q, data.database, k, ALPHA)
        most = evaluated(q, data.database, k, ALPHA + ROUNDING)
        assert least <= count <= most

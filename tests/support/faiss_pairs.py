"""Indexes that FAISS and our FAISS-shaped module fill alike, and the comparison of results.

Vectors are such that float32 sums have no rounding, and results without ties are compared: FAISS
promises neither bits nor an order of ties.
"""

from __future__ import annotations

import numpy as np

import hiernorm.adapters.faiss_shaped as ours

D = 16
METRICS = {"ip": ours.METRIC_INNER_PRODUCT, "l2": ours.METRIC_L2}
THRESHOLDS = {"ip": 30.0, "l2": 700.0}


def rows_without_rounding(count: int, steps: int, seed: int) -> np.ndarray:
    """Multiples of 1 / steps from -9 to 9."""
    values = np.random.default_rng(seed).integers(-9 * steps, 9 * steps + 1, (count, D))
    return (values / steps).astype(np.float32)


X = rows_without_rounding(300, 32, seed=0)
Q = {"ip": rows_without_rounding(25, 64, seed=3), "l2": rows_without_rounding(25, 32, seed=7)}
IDS = np.random.default_rng(2).permutation(1000)[:300] - 200


def flat(faiss, metric):
    return faiss.IndexFlat(D, METRICS[metric])


def full(faiss, metric):
    index = flat(faiss, metric)
    index.add(X[:100])
    index.add(X[100:])
    return index


def mapped(faiss, metric, kind="IndexIDMap", ids=IDS):
    index = getattr(faiss, kind)(flat(faiss, metric))
    index.add_with_ids(X[:120], ids[:120])
    index.add_with_ids(X[120:], ids[120:])
    return index


def kept(index):
    return index.ntotal, index.d, index.metric_type, index.is_trained


def assert_same(mine, other):
    """Equal values of equal types, through tuples and lists."""
    if isinstance(other, (tuple, list)):
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            assert_same(a, b)
    elif isinstance(other, np.ndarray):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(mine, other)
    else:
        assert mine == other

"""The flat scan, and the plan that prefers it: answers are those of the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm import _core, reference
from hiernorm.reference import Float32Array
from strategies import Data, databases
from support import METRICS, assert_same_hits, expected_hits, filled, pickled, random_rows


def _uniform(n: int, d: int, seed: int = 0) -> Float32Array:
    """Vectors that no rotation orders, far from zero: differences matter, codes do not see them."""
    return np.random.default_rng(seed).random((n, d), dtype=np.float32) + 3


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=40)
@given(data=databases(entries=60, dims=40, queries=20))
def test_the_flat_scan_has_the_bits_of_the_reference(metric: str, data: Data) -> None:
    if metric == "cosine":
        data = data.directed()
    index = filled("plain-flat", data.x, None, metric=metric)
    hits = index.search(data.queries, 4)
    ids, scores = expected_hits(data.queries, data.x, 4, metric)
    assert_array_equal(hits.ids, ids)
    assert_array_equal(hits.scores, scores)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e-19, 1.0, 1e18, 3e38])
def test_the_flat_scan_is_exact_at_any_scale(metric: str, scale: float) -> None:
    x = (random_rows(300, 20) / 4 * np.float64(scale)).clip(-3.4e38, 3.4e38).astype(np.float32)
    x[7] = x[8]
    x[~x.any(axis=1), 0] = 1e-45
    index = filled("plain-flat", x, None, metric=metric)
    hits = index.search(x[::9], 6)
    ids, scores = expected_hits(x[::9], x, 6, metric)
    assert_array_equal(hits.ids, ids)
    assert_array_equal(hits.scores, scores)


def test_the_flat_scan_settles_few_entries_and_proves_the_others() -> None:
    x = _uniform(5000, 32)
    index = filled("plain-flat", x, None, metric="l2")
    certificate = index.search(x[:50], 3).certificate
    assert certificate.exact.all()
    assert (certificate.work["scanned"] == 5000).all()
    assert certificate.work["settled"].mean() < 100


def _clustered(n: int, d: int, seed: int = 0) -> Float32Array:
    """Many near and exact ties, small values beside large ones."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((5, d)) * 10.0 ** rng.integers(-3, 3, (5, 1))
    noise = rng.standard_normal((n, d)) * rng.choice([0, 1e-7, 1e-2], (n, 1))
    return np.asarray(centres[rng.integers(0, 5, n)] + noise, dtype=np.float32)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("make", [_uniform, _clustered])
@pytest.mark.parametrize("dim", [2, 7, 16, 37])
def test_answers_and_work_are_those_of_the_reference_in_every_batch(
    metric: str, make: Callable[..., Float32Array], dim: int
) -> None:
    x, queries = make(3000, dim), make(41, dim, seed=1)
    index = filled("plain-flat", x, None, metric=metric)
    scores = [reference.canonical_scores(q, x, metric) for q in queries]
    work = [reference.flat_work(s, 5) for s in scores]
    best = [reference.rank(s, np.arange(len(x)))[:5] for s in scores]
    before = hiernorm.isa()
    try:
        for isa in hiernorm.available_isas():
            _core.use_isa(isa)
            for batch_size, threads in ((0, 1), (1, 1), (7, 2), (9, 1), (23, 1)):
                hits = index.search(queries, 5, batch_size=batch_size or None, threads=threads)
                assert_array_equal(hits.ids, best)
                assert_array_equal(hits.scores, [s[b] for s, b in zip(scores, best, strict=True)])
                assert_array_equal(hits.certificate.work["settled"], work)
                assert_array_equal(hits.certificate.work["scanned"], len(x))
                assert hits.certificate.exact.all()
    finally:
        _core.use_isa(before)


def test_vectors_that_codes_cannot_order_are_scanned_flat() -> None:
    x = _uniform(3000, 48)
    index = hiernorm.Index(48, metric="l2")
    index.add(x)
    assert index.major is None
    assert index.explain().engine == "flat"
    ids, scores = expected_hits(x[:20], x, 5, "l2")
    hits = index.search(x[:20], 5)
    assert_array_equal(hits.ids, ids)
    assert_array_equal(hits.scores, scores)


def test_vectors_with_a_spectrum_get_codes() -> None:
    x = random_rows(3000, 48) * np.float32(0.8) ** np.arange(48, dtype=np.float32)
    index = hiernorm.Index(48, metric="l2")
    index.add(x)
    assert index.major is not None
    assert index.explain().engine == "cascade"


def test_few_vectors_are_scanned_flat_until_there_are_many() -> None:
    x = random_rows(6000, 48) * np.float32(0.8) ** np.arange(48, dtype=np.float32)
    index = hiernorm.Index(48)
    for count, coded in ((500, False), (700, False), (3000, True)):
        index.add(x[len(index) : count])
        assert (index.major is not None) == coded
        ids, scores = expected_hits(x[:9], x[:count], 5, "ip")
        hits = index.search(x[:9], 5)
        assert_array_equal(hits.ids, ids)
        assert_array_equal(hits.scores, scores)


@pytest.mark.parametrize("wish", [{"major": 8}, {"cells": True}])
def test_who_asks_for_codes_gets_them(wish: dict[str, int]) -> None:
    index = hiernorm.Index(48, metric="l2", **wish)
    index.add(_uniform(3000, 48))
    assert index.major is not None


def test_a_flat_index_can_be_changed_pickled_and_outgrown() -> None:
    flat = _uniform(1500, 48)
    coded = random_rows(20_000, 48) * np.float32(0.7) ** np.arange(48, dtype=np.float32) * 20
    index = hiernorm.Index(48, metric="l2")
    index.add(flat)
    assert index.major is None
    index.delete(np.arange(10, 1500))
    index.upsert(flat[:1] + 1, ids=[5])
    index = pickled(index)
    index.add(coded)
    assert index.major is not None  # fitted again, to what is there now
    queries = flat[:5]
    twin = hiernorm.Index(48, metric="l2", engine="exhaustive")
    twin.add(index.reconstruct(index.ids), index.ids)
    assert_same_hits(index.search(queries, 7), twin.search(queries, 7))


def test_a_mask_and_a_range_limit_the_flat_scan() -> None:
    x = _uniform(2000, 16)
    index = filled("plain-flat", x, None, metric="l2")
    even = np.arange(0, 2000, 2)
    hits = index.search(x[:9], 5, where=even)
    ids, scores = expected_hits(x[:9], x[even], 5, "l2")
    assert_array_equal(hits.ids, even[ids])
    assert_array_equal(hits.scores, scores)
    limit = float(scores[0, 4])
    expected = np.flatnonzero(reference.canonical_scores(x[0], x, "l2") >= limit)
    assert_array_equal(np.sort(index.range(x[:1], limit)[0][0]), expected)

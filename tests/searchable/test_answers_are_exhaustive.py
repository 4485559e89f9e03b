"""Whatever the metric and wherever the entries lie, answers are those of exhaustive search."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

from containers import CONTAINERS, empty, holding
from hiernorm import reference
from hiernorm.reference import Float32Array
from layout import BLOCK, TILE, around
from strategies import Data, databases
from support import METRICS, assert_same_bits, assert_same_hits, expected_hits, hn_rows, random_rows
from worst_cases import CASES, right_answer, worst_case

SIZES = (1, *around(BLOCK), *around(TILE), 5 * TILE // 2)
MAJOR = 7

everywhere = pytest.mark.parametrize(
    ("container", "vectors", "metric"),
    [(c, v, m) for c in CONTAINERS for v in ("hn", "plain") for m in METRICS],
)


@cache
def _rows(vectors: str, n: int, seed: int = 0) -> Float32Array:
    """Rows that belong into a container of ``vectors``; a fifth of the plain ones are far away."""
    if vectors == "hn":
        return hn_rows(n, 24, MAJOR, seed=seed)
    rows = random_rows(n, 24, seed) + 3
    rows[::5] *= 10
    return rows


@everywhere
@pytest.mark.parametrize("name", CASES)
def test_worst_cases(name: str, container: str, vectors: str, metric: str) -> None:
    case = worst_case(name, metric)
    with holding(case.x, container, vectors, case.major, case.alpha, metric) as found:
        for k in (1, 10):
            expected = right_answer(name, metric, k)
            assert_same_hits(found.search(case.queries, k), expected)
            assert_same_hits(found.search(case.queries, k, batch_size=1), expected)


@everywhere
@settings(max_examples=8)
@given(data=databases())
def test_hostile_vectors(container: str, vectors: str, metric: str, data: Data) -> None:
    if metric == "cosine":
        data = data.directed()
    with holding(data.x, container, vectors, data.major, data.alpha, metric) as found:
        hits = found.search(data.queries, 5)
    assert_same_hits(hits, expected_hits(data.queries, data.x, 5, metric))


@everywhere
@pytest.mark.parametrize("n", SIZES)
def test_every_size_and_k(n: int, container: str, vectors: str, metric: str) -> None:
    x, queries = _rows(vectors, max(SIZES))[:n], _rows(vectors, 4, seed=1)
    with holding(x, container, vectors, MAJOR, metric=metric) as found:
        assert len(found) == n
        for k in (1, 7, n + 3):
            hits = found.search(queries, k)
            assert_same_hits(hits, expected_hits(queries, x, k, metric))
            assert hits.certificate.exact.all()


@everywhere
def test_an_empty_container_finds_nothing(container: str, vectors: str, metric: str) -> None:
    with empty(container, vectors, 6, 2, metric=metric) as found:
        hits = found.search(np.ones((2, 6)), 3)
        np.testing.assert_array_equal(hits.ids, np.full((2, 3), -1))
        np.testing.assert_array_equal(hits.scores, np.full((2, 3), -np.inf))
        assert [len(ids) for ids, _ in found.range(np.ones((2, 6)), -100.0)] == [0, 0]


@everywhere
def test_entries_far_from_those_it_was_fitted_on(container: str, vectors: str, metric: str) -> None:
    near, far = random_rows(300, 20), random_rows(300, 20, seed=1) * np.float32(1000)
    queries = np.concatenate([random_rows(2, 20, seed=2), far[:2]])
    with holding(near, container, vectors, 5, metric=metric) as found:
        found.add(far)
        hits = found.search(queries, 10)
    x = np.concatenate([near, far])
    assert_same_hits(hits, expected_hits(queries, x, 10, metric))


@everywhere
def test_ties_go_by_id_whatever_the_ids_are(container: str, vectors: str, metric: str) -> None:
    rows = _rows(vectors, 300).copy()
    rows[50:150] = rows[0]
    ids = np.random.default_rng(0).integers(0, 2**63 - 1, 300)
    with holding(rows, container, vectors, MAJOR, metric=metric, ids=ids) as found:
        hits = found.search(rows[:3], 20)
    assert_same_hits(hits, expected_hits(rows[:3], rows, 20, metric, ids))


@everywhere
def test_ranges_hold_every_score_from_the_threshold_up(
    container: str, vectors: str, metric: str
) -> None:
    x, queries = _rows(vectors, TILE + 52), _rows(vectors, 3, seed=1)
    ids = np.arange(len(x))
    scores = np.sort(reference.canonical_scores(queries[0], x, metric))
    with holding(x, container, vectors, MAJOR, metric=metric) as found:
        for threshold in (*scores[[0, TILE // 2, -20, -1]].tolist(), float(scores[-1]) + 1):
            hits = found.range(queries, threshold)
            for q, (found_ids, found_scores) in zip(queries, hits, strict=True):
                right = reference.exhaustive_range(q, x, ids, threshold, metric)
                np.testing.assert_array_equal(found_ids, right[0])
                assert_same_bits(found_scores, right[1])

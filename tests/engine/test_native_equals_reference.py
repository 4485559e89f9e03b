"""Native answers are those of the reference, bit for bit, on every instruction set."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from strategies import Data, databases
from support import (
    KINDS,
    METRICS,
    assert_same_hits,
    expected_hits,
    filled,
    hn_rows,
    make_index,
    random_rows,
)
from worst_cases import CASES, right_answer, worst_case

SIZES = (1, 15, 16, 17, 1023, 1024, 1025, 2047, 2048, 2049)
DIMS = (2, 3, 5, 17, 63, 64, 65, 79, 80, 129, 130, 200, 767, 1536)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_worst_cases(isa: str, name: str, kind: str, metric: str) -> None:
    case = worst_case(name, metric)
    index = filled(kind, case.x, case.major, case.alpha, metric)
    for k in (1, 10):
        expected = right_answer(name, metric, k)
        assert_same_hits(index.search(case.queries, k), expected)
        assert_same_hits(index.search(case.queries, k, batch_size=1, threads=1), expected)


@cache
def _of_size(n: int) -> tuple[Float32Array, Float32Array]:
    rows = hn_rows(1030, 24, 7)
    return rows[:n], rows[-5:]


@cache
def _right_of_size(n: int, k: int, metric: str) -> tuple[Int64Array, Float64Array]:
    x, queries = _of_size(n)
    return expected_hits(queries, x, k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_every_size_and_k(isa: str, n: int, kind: str, metric: str) -> None:
    x, queries = _of_size(n)
    index = filled(kind, x, 7, metric=metric)
    for k in (1, 2, 7, n, n + 3):
        assert_same_hits(index.search(queries, k), _right_of_size(n, k, metric))


@pytest.mark.smoke
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_index_finds_nothing(kind: str, metric: str) -> None:
    hits = make_index(kind, 6, 2, metric=metric).search(np.ones((2, 6)), 3)
    np.testing.assert_array_equal(hits.ids, np.full((2, 3), -1))
    np.testing.assert_array_equal(hits.scores, np.full((2, 3), -np.inf))


@pytest.mark.parametrize("kind", KINDS)
def test_across_the_boundary_of_a_chunk(isa: str, kind: str) -> None:
    x, queries, expected = _across_a_chunk()
    assert_same_hits(filled(kind, x, 3).search(queries, 10), expected)


@cache
def _across_a_chunk() -> tuple[Float32Array, Float32Array, tuple[Int64Array, Float64Array]]:
    x = hn_rows(65_536 + 40, 6, 3)
    x[65_530:65_545] = x[0]
    queries = np.concatenate([x[:1], x[65_535:65_537], x[-1:]])
    return x, queries, expected_hits(queries, x, 10)


def _majors(d: int) -> list[int]:
    return sorted({major for major in (1, 31, 32, 33, 64, 65, 100, d - 1) if major < d})


@cache
def _of_dim(d: int, major: int) -> tuple[Float32Array, Float32Array]:
    rows = hn_rows(104, d, major)
    rows[50:60] = rows[0]
    return rows[:100], rows[98:]


@cache
def _right_of_dim(d: int, major: int, metric: str) -> tuple[Int64Array, Float64Array]:
    x, queries = _of_dim(d, major)
    return expected_hits(queries, x, 5, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper", "hn-exhaustive"])
@pytest.mark.parametrize(("d", "major"), [(d, major) for d in DIMS for major in _majors(d)])
def test_every_shape_of_hn_vectors(isa: str, d: int, major: int, kind: str, metric: str) -> None:
    x, queries = _of_dim(d, major)
    expected = _right_of_dim(d, major, metric)
    assert_same_hits(filled(kind, x, major, metric=metric).search(queries, 5), expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("d", "major"), [(d, major) for d in DIMS if d < 500 for major in (None, 1, d - 1)]
)
def test_every_shape_of_plain_vectors(isa: str, d: int, major: int | None, metric: str) -> None:
    x, queries = _of_dim(d, 1)
    index = filled("plain-cascade", x, major, metric=metric)
    assert_same_hits(index.search(queries, 5), _right_of_dim(d, 1, metric))


@pytest.mark.parametrize("d", [767, 1536])
def test_wide_plain_vectors(isa: str, d: int) -> None:
    x, queries = _of_dim(d, 1)
    assert_same_hits(filled("plain-cascade", x, 64).search(queries, 5), _right_of_dim(d, 1, "ip"))


@pytest.mark.parametrize("kind", KINDS)
@given(data=databases())
def test_hostile_vectors(kind: str, data: Data) -> None:
    hits = filled(kind, data.x, data.major, data.alpha).search(data.queries, 5)
    assert_same_hits(hits, expected_hits(data.queries, data.x, 5))


@pytest.mark.parametrize("kind", KINDS)
@given(data=databases())
def test_hostile_vectors_by_cosine(kind: str, data: Data) -> None:
    x, queries = (rows[rows.any(axis=1)] for rows in (data.x, data.queries))
    hits = filled(kind, x, data.major, data.alpha, "cosine").search(queries, 5)
    assert_same_hits(hits, expected_hits(queries, x, 5, "cosine"))


@pytest.mark.parametrize(
    "kind", ["hn-cascade", "hn-cells", "hn-paper", "plain-cascade", "plain-cells"]
)
def test_a_database_that_outgrows_its_fit(isa: str, kind: str) -> None:
    """Steps are chosen on the first entries; later ones are a thousand times larger."""
    small, large = random_rows(300, 20), random_rows(300, 20, seed=1) * np.float32(1000)
    x = np.concatenate([small, large])
    index = filled(kind, small, 5)
    index.add(large)
    queries = random_rows(4, 20, seed=2)
    assert_same_hits(index.search(queries, 10), expected_hits(queries, x, 10))


def test_a_tail_of_the_query_does_not_overflow_its_code(isa: str) -> None:
    index = hiernorm.Index(2, major=1, alpha=0.5)
    index.add([[0, 1], [0, 2]])
    assert index.search([0, 1 / 7], k=1).ids.item() == 1


@pytest.mark.parametrize("major", [1, 2, 3, 5])
def test_databases_without_a_major(isa: str, major: int) -> None:
    x = random_rows(2000, 12)
    x[:, :major] = 0
    queries = random_rows(8, 12, seed=1)
    hits = filled("hn-cascade", x, major).search(queries, 5)
    assert_same_hits(hits, expected_hits(queries, x, 5))

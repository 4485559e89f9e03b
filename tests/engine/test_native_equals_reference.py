"""Native answers are those of the reference, bit for bit, on every instruction set."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given

import hiernorm
from hiernorm.reference import LANES, Float32Array, Float64Array, Int64Array
from layout import BLOCK, CHUNK, STAGE, TILE, around
from strategies import Data, databases
from support import (
    KINDS,
    METRICS,
    assert_same_hits,
    every_kind_and_metric,
    expected_hits,
    filled,
    hn_rows,
    make_index,
    random_rows,
)
from worst_cases import CASES, right_answer, worst_case

SIZES = (1, *around(BLOCK), *around(TILE // 2), *around(TILE), 5 * TILE // 2)
DIMS = (
    *(2, 3, 5, LANES + 1, *around(STAGE), STAGE + LANES - 1, STAGE + LANES),
    *(2 * STAGE + 1, 2 * STAGE + 2, 200, 767, 1536),
)


@every_kind_and_metric
@pytest.mark.parametrize("name", CASES)
def test_worst_cases(isa: str, name: str, kind: str, metric: str) -> None:
    case = worst_case(name, metric)
    index = filled(kind, case.x, case.major, case.alpha, metric)
    for k in (1, 10):
        expected = right_answer(name, metric, k)
        assert_same_hits(index.search(case.queries, k), expected)
        assert_same_hits(index.search(case.queries, k, batch_size=1, threads=1), expected)


@cache
def _rows(vectors: str) -> Float32Array:
    n = max(SIZES) + 5
    return hn_rows(n, 24, 7) if vectors == "hn" else random_rows(n, 24) + 3


def _of_size(n: int, vectors: str) -> tuple[Float32Array, Float32Array]:
    rows = _rows(vectors)
    assert n <= len(rows) - 5
    return rows[:n], rows[-5:]


@cache
def _right_of_size(n: int, vectors: str, k: int, metric: str) -> tuple[Int64Array, Float64Array]:
    x, queries = _of_size(n, vectors)
    return expected_hits(queries, x, k, metric)


@every_kind_and_metric
@pytest.mark.parametrize("n", SIZES)
def test_every_size_and_k(isa: str, n: int, kind: str, metric: str) -> None:
    vectors = kind.split("-")[0]
    x, queries = _of_size(n, vectors)
    index = filled(kind, x, 7, metric=metric)
    assert len(index) == n
    for k in (1, 2, 7, n, n + 3):
        assert_same_hits(index.search(queries, k), _right_of_size(n, vectors, k, metric))


@pytest.mark.smoke
@every_kind_and_metric
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
    x = hn_rows(CHUNK + 40, 6, 3)
    x[CHUNK - 6 : CHUNK + 9] = x[0]
    queries = np.concatenate([x[:1], x[CHUNK - 1 : CHUNK + 1], x[-1:]])
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


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper", "hn-exhaustive"])
@pytest.mark.parametrize(("d", "major"), [(d, major) for d in DIMS for major in _majors(d)])
def test_every_shape_of_hn_vectors(isa: str, d: int, major: int, kind: str, metric: str) -> None:
    x, queries = _of_dim(d, major)
    expected = _right_of_dim(d, major, metric)
    assert_same_hits(filled(kind, x, major, metric=metric).search(queries, 5), expected)


@pytest.mark.parametrize(("d", "major"), [(d, major) for d in DIMS for major in _majors(d)])
def test_every_shape_by_distance(isa: str, d: int, major: int) -> None:
    x, queries = _of_dim(d, major)
    expected = _right_of_dim(d, major, "l2")
    assert_same_hits(filled("hn-cascade", x, major, metric="l2").search(queries, 5), expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("d", "major"), [(d, major) for d in DIMS if d < 500 for major in (None, 1, d // 2, d - 1)]
)
def test_every_shape_of_plain_vectors(isa: str, d: int, major: int | None, metric: str) -> None:
    x, queries = _of_dim(d, 1)
    index = filled("plain-cascade", x, major, metric=metric)
    assert_same_hits(index.search(queries, 5), _right_of_dim(d, 1, metric))


@pytest.mark.parametrize("d", [767, 1536])
def test_wide_plain_vectors(isa: str, d: int) -> None:
    x, queries = _of_dim(d, 1)
    assert_same_hits(filled("plain-cascade", x, 64).search(queries, 5), _right_of_dim(d, 1, "ip"))


@every_kind_and_metric
@given(data=databases())
def test_hostile_vectors(kind: str, metric: str, data: Data) -> None:
    if metric == "cosine":
        data = data.directed()
    hits = filled(kind, data.x, data.major, data.alpha, metric).search(data.queries, 5)
    assert_same_hits(hits, expected_hits(data.queries, data.x, 5, metric))


@every_kind_and_metric
def test_a_database_that_outgrows_its_fit(isa: str, kind: str, metric: str) -> None:
    """Steps are chosen on the first entries; later ones are a thousand times larger."""
    small, large = random_rows(300, 20), random_rows(300, 20, seed=1) * np.float32(1000)
    index = filled(kind, small, 5, metric=metric)
    index.add(large)
    queries = np.concatenate([random_rows(4, 20, seed=2), large[:2]])
    x = np.concatenate([small, large])
    assert_same_hits(index.search(queries, 10), expected_hits(queries, x, 10, metric))


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

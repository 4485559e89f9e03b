"""Range search: every entry from a score up, and no other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiernorm
from hiernorm import reference
from hiernorm.reference import Float32Array
from strategies import Data, databases, hn_databases
from support import (
    KINDS,
    assert_same_bits,
    every_kind_and_metric,
    filled,
    hn_rows,
    make_index,
)

MAJOR = 6


@pytest.fixture(scope="module")
def x() -> Float32Array:
    rows = hn_rows(1100, 24, MAJOR)
    rows[500:520] = rows[3]
    return rows


@pytest.fixture(scope="module")
def queries(x: Float32Array) -> Float32Array:
    return np.concatenate([x[:4], hn_rows(3, 24, MAJOR, seed=1)])


def _assert_range(
    index: hiernorm.Index, queries: Float32Array, x: Float32Array, threshold: float, metric: str
) -> None:
    hits = index.range(queries, threshold)
    assert len(hits) == len(queries)
    assert hits.offsets[0] == 0
    assert hits.offsets[-1] == len(hits.ids) == len(hits.scores)
    ids = np.arange(len(x), dtype=np.int64)
    for q, (found, scores) in zip(queries, hits, strict=True):
        expected = reference.exhaustive_range(q, x, ids, threshold, metric)
        assert_same_bits(found, expected[0])
        assert_same_bits(scores, expected[1])
    assert hits.certificate.exact.all()


@every_kind_and_metric
@pytest.mark.parametrize("threshold", [-2.0, -0.3, 0.0, 0.5, 0.9, 1.1])
def test_range_equals_the_reference(
    isa: str, x: Float32Array, queries: Float32Array, kind: str, metric: str, threshold: float
) -> None:
    _assert_range(filled(kind, x, MAJOR, metric=metric), queries, x, threshold, metric)


@every_kind_and_metric
def test_an_entry_exactly_at_the_threshold_is_found(
    isa: str, x: Float32Array, queries: Float32Array, kind: str, metric: str
) -> None:
    index = filled(kind, x, MAJOR, metric=metric)
    scores = np.sort(reference.canonical_scores(queries[5], x, metric))
    for rank in (0, 500, 1090, 1099):
        score = float(scores[rank])
        _assert_range(index, queries, x, score, metric)
        assert scores[rank] in index.range(queries[5], score).scores
        above = index.range(queries[5], float(np.nextafter(score, np.inf))).scores
        assert len(above) == (scores > score).sum()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.one_of(databases(), hn_databases()), rank=st.floats(0, 1))
def test_hostile_vectors(kind: str, data: Data, rank: float) -> None:
    scores = np.sort(reference.canonical_scores(data.queries[0], data.x))
    threshold = float(scores[int(rank * (len(scores) - 1))])
    index = filled(kind, data.x, data.major, data.alpha)
    _assert_range(index, data.queries, data.x, threshold, "ip")


@pytest.mark.parametrize("kind", KINDS)
def test_everything_and_nothing(x: Float32Array, queries: Float32Array, kind: str) -> None:
    index = filled(kind, x, MAJOR)
    everything = index.range(queries, -2)
    np.testing.assert_array_equal(everything.offsets, np.arange(8) * len(x))
    nothing = index.range(queries, 2)
    np.testing.assert_array_equal(nothing.offsets, np.zeros(8))
    assert [len(ids) for ids, _ in nothing] == [0] * 7
    empty = make_index(kind, 24, MAJOR).range(queries, -2)
    np.testing.assert_array_equal(empty.offsets, np.zeros(8))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_do_not_matter(x: Float32Array, queries: Float32Array, threads: int) -> None:
    index = filled("plain-cascade", x, MAJOR)
    expected = index.range(queries, 0.3, threads=1)
    hits = index.range(queries, 0.3, threads=threads)
    assert_same_bits(hits.offsets, expected.offsets)
    assert_same_bits(hits.ids, expected.ids)
    assert_same_bits(hits.scores, expected.scores)


def test_a_search_is_the_head_of_a_range(x: Float32Array, queries: Float32Array) -> None:
    index = filled("hn-cascade", x, MAJOR)
    top = index.search(queries, 10)
    for i, (ids, scores) in enumerate(index.range(queries, -2)):
        assert_same_bits(ids[:10], top.ids[i])
        assert_same_bits(scores[:10], top.scores[i])


def test_hits_are_indexed_by_query(x: Float32Array, queries: Float32Array) -> None:
    hits = filled("hn-cascade", x, MAJOR).range(queries, 0.3)
    first, last = hits.offsets[6], hits.offsets[7]
    for query in (6, -1):
        assert_same_bits(hits[query][0], hits.ids[first:last])
        assert_same_bits(hits[query][1], hits.scores[first:last])
    for query in (7, -8):
        with pytest.raises(IndexError, match=f"^query {query} of 7$"):
            hits[query]
    assert repr(hits) == f"RangeHits(queries=7, total={len(hits.ids)})"
    np.testing.assert_array_equal(hits.certificate.kth_score, np.full(7, 0.3))
    assert (hits.certificate.skipped_bound < 0.3).all()


def test_one_query_may_be_a_vector(x: Float32Array, queries: Float32Array) -> None:
    index = filled("hn-cascade", x, MAJOR)
    assert_same_bits(index.range(queries[2], 0.3)[0][0], index.range(queries, 0.3)[2][0])
    assert len(index.range(np.zeros((0, 24)), 0.3)) == 0

"""What must not change an answer: threads, batches, order, splits, instruction sets, copies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiernorm
from hiernorm import _core
from hiernorm.reference import Float32Array
from strategies import Data, databases, hn_databases
from support import (
    KINDS,
    assert_same_bits,
    assert_same_hits,
    every_kind_and_metric,
    filled,
    hn_rows,
    make_index,
    pickled,
)

MAJOR = 7
THREADS = (1, 2, 3, 7)
BATCHES = (1, 2, 5, None)


@cache
def _data() -> tuple[Float32Array, Float32Array]:
    rows = hn_rows(1500, 30, MAJOR)
    rows[100:140] = rows[0]
    return rows, np.concatenate([rows[:3], rows[135:137], hn_rows(8, 30, MAJOR, seed=1)])


@cache
def _index(kind: str, metric: str) -> hiernorm.Index:
    return filled(kind, _data()[0], MAJOR, metric=metric)


@every_kind_and_metric
def test_threads_and_batches_do_not_matter(kind: str, metric: str) -> None:
    queries = _data()[1]
    index = _index(kind, metric)
    expected = index.search(queries, 10, threads=1, batch_size=1)
    for threads in THREADS:
        for batch_size in BATCHES:
            hits = index.search(queries, 10, threads=threads, batch_size=batch_size)
            assert_same_hits(hits, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_does_not_depend_on_its_companions(kind: str) -> None:
    queries = _data()[1]
    index = _index(kind, "ip")
    together = index.search(queries, 10)
    for i, q in enumerate(queries):
        alone = index.search(q, 10)
        assert_same_bits(alone.ids[0], together.ids[i])
        assert_same_bits(alone.scores[0], together.scores[i])


@pytest.mark.parametrize("kind", KINDS)
def test_the_top_5_are_the_head_of_the_top_50(kind: str) -> None:
    queries = _data()[1]
    five, fifty = (_index(kind, "ip").search(queries, k) for k in (5, 50))
    assert_same_bits(five.ids, fifty.ids[:, :5])
    assert_same_bits(five.scores, fifty.scores[:, :5])


@every_kind_and_metric
def test_the_order_of_insertion_does_not_matter(kind: str, metric: str) -> None:
    x, queries = _data()
    expected = _index(kind, metric).search(queries, 60)
    for seed in (1, 2):
        order = np.random.default_rng(seed).permutation(len(x))
        index = filled(kind, x[order], MAJOR, metric=metric, ids=order)
        assert_same_hits(index.search(queries, 60), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cuts", [(1, 2, 3, 5, 8), (750,), (1024, 1025), tuple(range(99, 1500, 99))]
)
def test_one_addition_or_many_do_not_matter(kind: str, cuts: tuple[int, ...]) -> None:
    x, queries = _data()
    index = make_index(kind, 30, MAJOR)
    for part in np.split(x, cuts):
        index.add(part)
    assert_same_hits(index.search(queries, 60), _index(kind, "ip").search(queries, 60))


@pytest.mark.parametrize("kind", KINDS)
def test_the_instruction_set_does_not_matter(kind: str) -> None:
    """Neither for answers nor for certificates, also if built on another than searched on."""
    x, queries = _data()
    expected = _index(kind, "ip").search(queries, 10)
    before = hiernorm.isa()
    try:
        for built in hiernorm.available_isas():
            _core.use_isa(built)
            index = filled(kind, x, MAJOR)
            for searched in hiernorm.available_isas():
                _core.use_isa(searched)
                hits = index.search(queries, 10)
                assert_same_hits(hits, expected)
                assert list(hits.certificate) == list(expected.certificate)
    finally:
        _core.use_isa(before)


@pytest.mark.parametrize("kind", KINDS)
def test_optimize_does_not_matter(kind: str) -> None:
    x, queries = _data()
    index = make_index(kind, 30, MAJOR)
    for part in np.split(x, (10, 20, 1300)):
        index.add(part)
    expected = _index(kind, "ip").search(queries, 10)
    index.optimize()
    assert_same_hits(index.search(queries, 10), expected)
    index.optimize()
    assert_same_hits(index.search(queries, 10), expected)
    np.testing.assert_array_equal(index.ids, np.arange(len(x)))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@every_kind_and_metric
def test_copies_answer_alike(
    kind: str, metric: str, copied: Callable[[hiernorm.Index], hiernorm.Index]
) -> None:
    queries = _data()[1]
    index = _index(kind, metric)
    twin = copied(index)
    assert_same_hits(twin.search(queries, 10), index.search(queries, 10))
    assert twin.digest == index.digest
    assert twin.major == index.major


Way = tuple[Data, np.ndarray, list[int], int]


@st.composite
def _ways(draw: st.DrawFn, data: st.SearchStrategy[Data]) -> Way:
    drawn = draw(data)
    n = len(drawn.x)
    order = np.array(draw(st.permutations(range(n))), dtype=np.int64)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return drawn, order, cuts, draw(st.sampled_from(THREADS))


@pytest.mark.parametrize(
    "kind", ["hn-cascade", "hn-cells", "hn-paper", "plain-cascade", "plain-cells"]
)
@given(way=_ways(st.one_of(hn_databases(entries=60), databases(entries=60))))
def test_no_way_of_building_and_asking_matters(kind: str, way: Way) -> None:
    data, order, cuts, threads = way
    expected = filled(kind, data.x, data.major, data.alpha).search(data.queries, 7)
    index = make_index(kind, data.x.shape[1], data.major, data.alpha)
    for part in np.split(order, cuts):
        index.add(data.x[part], part)
    assert_same_hits(index.search(data.queries, 7, threads=threads, batch_size=2), expected)

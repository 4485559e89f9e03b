"""Filters and removal of FAISS-shaped indexes: any kind of selector, and nothing is copied."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import hiernorm.adapters
import hiernorm.adapters.faiss_shaped as ours
from support import random_rows

N, D = 4_000, 256
X = random_rows(N, D)


@pytest.fixture(scope="module", params=["IndexFlatIP", "IndexIDMap2", "IndexHN"])
def index(request):
    if request.param == "IndexIDMap2":
        index = ours.IndexIDMap2(ours.IndexFlatIP(D))
        index.add_with_ids(X, np.arange(N))
    else:
        index = getattr(ours, request.param)(D)
        index.add(X)
    return index


@pytest.fixture
def no_copies(monkeypatch):
    """Make every way to copy entries fail; what is native allocates unseen by tracemalloc."""

    def refuse(*args, **kwargs):
        raise AssertionError("entries are copied")

    for name in ("reconstruct", "add", "upsert", "optimize", "_sibling", "_entries"):
        monkeypatch.setattr(hiernorm.Index, name, refuse)


def peak_of(call):
    """The memory that a call takes while it runs, in bytes."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("no_copies")
def test_a_filtered_query_copies_no_vectors(index):
    held = index._engine().nbytes
    for sel in (ours.IDSelectorRange(1, N), lambda ids: ids % 2 == 0, np.arange(1, N)):
        params = ours.SearchParameters(sel=sel)
        taken = [
            peak_of(lambda p=params: index.search(X[:1], 5, p)),
            peak_of(lambda p=params: index.range_search(X[:1], 200, p)),
        ]
        assert max(taken) < X.nbytes / 8
    assert index._engine().nbytes == held


def test_removal_copies_no_vectors(index, request):
    twin = ours.clone_index(index)
    request.getfixturevalue("no_copies")
    held = twin._engine().nbytes
    tracemalloc.start()
    try:
        assert twin.remove_ids(ours.IDSelectorRange(0, N // 4)) == N // 4
        assert tracemalloc.get_traced_memory()[1] < X.nbytes / 8
    finally:
        tracemalloc.stop()
    assert twin._engine().nbytes <= held * 1.01
    assert twin.ntotal == N - N // 4


def test_a_filter_may_be_of_any_kind(index):
    expected = index.search(X[:9], 5, ours.SearchParameters(sel=ours.IDSelectorRange(7, 300)))
    assert expected[1].min() >= 7

    class Like:
        def is_member(self, id):
            return 7 <= id < 300

    for params in (
        ours.IDSelectorRange(7, 300),
        ours.IDSelectorNot(ours.IDSelectorNot(ours.IDSelectorRange(7, 300))),
        ours.IDSelectorBatch(np.arange(7, 300)),
        ours.IDSelectorArray(293, np.arange(7, 400)),
        ours.IDSelectorAnd(range(300), lambda ids: ids >= 7),
        ours.PyCallbackIDSelector(lambda id: 7 <= id < 300),
        range(7, 300),
        lambda ids: (ids >= 7) & (ids < 300),
        Like(),
    ):
        for mine, wanted in zip(index.search(X[:9], 5, params), expected, strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_selectors_of_faiss_are_applied_by_faiss(index):
    faiss = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    odd = faiss.IDSelectorBatch(np.arange(1, N, 2))
    for sel, like in (
        (odd, ours.IDSelectorBatch(np.arange(1, N, 2))),
        (faiss.IDSelectorNot(odd), ours.IDSelectorBatch(np.arange(0, N, 2))),
        (
            faiss.IDSelectorAnd(odd, faiss.IDSelectorRange(100, 900)),
            ours.IDSelectorBatch(np.arange(101, 900, 2)),
        ),
    ):
        expected = index.search(X[:9], 5, like)
        for params in (sel, faiss.SearchParameters(sel=sel)):
            for mine, wanted in zip(index.search(X[:9], 5, params), expected, strict=True):
                np.testing.assert_array_equal(mine, wanted)


def test_a_negated_selector_is_not_taken_for_what_it_negates(index):
    found = index.search(X[:9], 5, ours.IDSelectorNot(ours.IDSelectorRange(0, N - 50)))[1]
    assert found.min() >= N - 50


def test_bad_selectors_have_their_errors():
    index = ours.IndexFlatL2(2)
    index.add(np.eye(2))
    with pytest.raises(ValueError, match="a bitmap must be uint8"):
        ours.IDSelectorBitmap(np.zeros(3))
    with pytest.raises(ValueError, match="n must be at most 3, got 4"):
        ours.IDSelectorArray(4, [1, 2, 3])
    with pytest.raises(NotImplementedError, match=r"must have a method members"):
        index.search(np.eye(2), 1, ours.IDSelector())


def test_the_names_of_the_adapters_are_listed():
    assert set(hiernorm.adapters.__all__) <= set(dir(hiernorm.adapters))
    assert "index_factory" in dir(hiernorm.adapters)
    assert hiernorm.adapters.IndexIDMap is ours.IndexIDMap
    assert hiernorm.adapters.faiss_shaped is ours
    missing = [name for name in ours.__all__ if not hasattr(ours, name)]
    assert missing == []

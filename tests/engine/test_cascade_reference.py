"""The cascade in NumPy gives the native answer, and the native certificate, bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import hiernorm
from hiernorm._core import BLOCK_ENTRIES, RANGE_ENTRIES, TILE_ENTRIES
from hiernorm.certificate import STEPS
from hiernorm.reference import Float32Array, cascade_search
from support import assert_same_bits, expected_hits, hn_rows

METRICS = ("ip", "cosine", "l2")
SIZES = (1, BLOCK_ENTRIES - 1, BLOCK_ENTRIES + 1, 300, TILE_ENTRIES + 1, RANGE_ENTRIES + 808)
D, MAJOR, ALPHA = 90, 7, 0.125


@cache
def _rows(seed: int, count: int) -> Float32Array:
    """Rows around a few hundred centres, so that cells have something to skip."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((300, D))
    near = centres[rng.integers(0, len(centres), count)]
    rows = near + 0.2 * rng.standard_normal((count, D))
    rows[:, MAJOR:] *= 0.5
    return rows.astype(np.float32)


def _of_kind(kind: str, rows: Float32Array) -> Float32Array:
    return rows if kind == "plain" else hiernorm.normalize(rows, MAJOR, ALPHA)


@cache
def _index(kind: str, metric: str, cells: bool, n: int) -> hiernorm.Index:
    alpha = ALPHA if kind == "hn" else None
    index = hiernorm.Index(D, major=MAJOR, alpha=alpha, metric=metric, cells=cells)
    index.add(_of_kind(kind, _rows(1, n)), ids=np.random.default_rng(2).permutation(n) * 3)
    return index


def _assert_replays(index: hiernorm.Index, queries: Float32Array, k: int) -> dict[str, int]:
    """The reference finds what the index finds; the counts, summed over the queries."""
    core = index._core
    encoding = core.encoding()
    assert encoding is not None
    hits = index.search(queries, k, batch_size=1)
    total = dict.fromkeys(STEPS, 0)
    for i, q in enumerate(queries):
        answer = cascade_search(q, encoding.state(), core.tensors(), k)
        found = len(answer.ids)
        assert found == min(k, len(index))
        np.testing.assert_array_equal(answer.ids, hits.ids[i, :found])
        assert_same_bits(answer.scores, hits.scores[i, :found])
        native = {step: int(hits.certificate.work[step][i]) for step in STEPS}
        assert answer.work == native
        assert_same_bits(
            np.array(answer.skipped_bound), np.array(hits.certificate.skipped_bound[i])
        )
        total = {step: total[step] + native[step] for step in STEPS}
    return total


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("kind", ["hn", "plain"])
@pytest.mark.parametrize("metric", METRICS)
def test_answers_counts_and_bounds_are_the_native_ones(metric: str, kind: str, cells: bool) -> None:
    queries = _of_kind(kind, _rows(3, 4))
    for n in SIZES:
        index = _index(kind, metric, cells, n)
        for k in (1, 10):
            _assert_replays(index, queries, k)


def test_the_data_of_these_tests_takes_every_step() -> None:
    """Otherwise equal counts would say little."""
    index = _index("hn", "ip", True, 9000)
    queries = _of_kind("hn", _rows(3, 4))
    work = _assert_replays(index, queries, 10)
    assert 0 < work["scanned"] <= work["cells"] * BLOCK_ENTRIES < 4 * 9000 / 2
    assert work["scanned"] > work["sifted"] > work["tightened"] >= work["settled"] >= 40


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_distances_of_hn_vectors_take_the_work_of_inner_products(metric: str) -> None:
    """The vectors are unit vectors: weigh must know the major as exactly under every metric."""
    queries = _of_kind("hn", _rows(3, 32))
    work = [
        _index("hn", name, False, 9000).search(queries, 10).certificate.work
        for name in ("ip", metric)
    ]
    for step in ("tightened", "settled"):
        assert work[1][step].sum() <= 1.02 * work[0][step].sum()


def test_all_hits_are_wanted() -> None:
    index = _index("hn", "cosine", False, 300)
    _assert_replays(index, _of_kind("hn", _rows(3, 2)), 300)
    _assert_replays(index, _of_kind("hn", _rows(3, 2)), 301)


def test_a_minor_that_is_not_worth_reading_is_not_read() -> None:
    x = hn_rows(3000, 24, 6, 1e-9)
    index = hiernorm.Index(24, major=6, alpha=1e-9)
    index.add(x)
    _assert_replays(index, x[:5], 3)


def test_equal_scores_are_replayed_too() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-1, 2, (5000, 6)).astype(np.float32)
    index = hiernorm.Index(6, major=2, cells=True)
    index.add(x)
    _assert_replays(index, x[:6], 5)


def test_the_reference_is_right_by_itself() -> None:
    index = _index("plain", "l2", True, 2049)
    encoding, tensors = index._core.encoding(), index._core.tensors()
    assert encoding is not None
    ids = np.random.default_rng(2).permutation(2049) * 3
    x, queries = _rows(1, 2049), _rows(3, 4)
    order = np.argsort(ids)
    expected = expected_hits(queries, x[order], 10, "l2")
    for i, q in enumerate(queries):
        answer = cascade_search(q, encoding.state(), tensors, 10, cells=False)
        np.testing.assert_array_equal(answer.ids, ids[order][expected[0][i]])
        assert_same_bits(answer.scores, expected[1][i])

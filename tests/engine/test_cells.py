"""Cells: fewer entries read, the same answers, and an account of what was skipped."""

from __future__ import annotations

import numpy as np
import pytest

import hiernorm
from hiernorm.reference import Float32Array
from support import assert_same_bits, assert_same_hits, expected_hits, random_rows

D, MAJOR, ALPHA = 24, 8, 1 / 16


def clustered(n: int, seed: int = 0) -> Float32Array:
    """HN rows around a hundred directions."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((100, D))
    rows = centres[random.integers(100, size=n)] + 0.2 * random.standard_normal((n, D))
    return hiernorm.normalize(rows.astype(np.float32), MAJOR, ALPHA)


def index_of(x: Float32Array, cells: bool | None = True, **options: object) -> hiernorm.Index:
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA, cells=cells)
    index.add(x, **options)  # type: ignore[arg-type]
    return index


def test_most_entries_are_never_read() -> None:
    x = clustered(6000)
    hits = index_of(x).search(x[:50], k=3)
    work = hits.certificate.work
    assert (work["scanned"] < 0.3 * len(x)).all()
    assert (work["cells"] > 0).all()
    assert (work["sifted"] <= work["scanned"] + 3).all()
    assert hits.certificate.exact.all()
    ids, scores = expected_hits(x[:50], x, 3)
    assert_same_bits(hits.ids, ids)
    assert_same_bits(hits.scores, scores)


def test_without_cells_all_entries_are_read() -> None:
    x = clustered(3000)
    work = index_of(x, cells=False).search(x[:5], k=3).certificate.work
    assert (work["scanned"] == len(x)).all()
    assert (work["cells"] == 0).all()


def test_large_additions_get_cells_by_themselves_where_they_pay() -> None:
    x = clustered(20_000)
    hits = index_of(x, cells=None).search(x[:20], k=1)
    assert (hits.certificate.work["scanned"] < len(x) / 2).all()
    uniform = hiernorm.normalize(random_rows(20_000, D), MAJOR, 0.9)
    index = hiernorm.Index(D, major=MAJOR, alpha=0.9)
    index.add(uniform)
    assert (index.search(uniform[:20], k=1).certificate.work["cells"] == 0).all()


def test_cells_depend_on_the_entries_not_on_the_order_they_came_in() -> None:
    x = clustered(5000)
    order = np.random.default_rng(1).permutation(len(x))
    one, other = index_of(x), index_of(x[order], ids=order)
    first, second = one.search(x[:40], k=2), other.search(x[:40], k=2)
    assert_same_hits(first, second)
    for step in ("cells", "scanned"):
        assert_same_bits(first.certificate.work[step], second.certificate.work[step])
    assert_same_bits(first.certificate.skipped_bound, second.certificate.skipped_bound)


def test_entries_keep_their_ids() -> None:
    x = clustered(4000)
    ids = np.random.default_rng(2).permutation(len(x)).astype(np.int64)
    index = index_of(x, ids=ids)
    index.add(x[:100] * 0.5, ids=np.arange(5000, 5100))
    assert_same_bits(index.ids, np.sort(np.concatenate([ids, np.arange(5000, 5100)])))
    assert_same_bits(index.reconstruct(ids), x)


def test_what_is_added_later_is_found_before_and_after_optimize() -> None:
    x = clustered(9000)
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA)
    index.add(x[:3000])
    for first in range(3000, 9000, 250):
        index.add(x[first : first + 250])
    ids, scores = expected_hits(x[::450], x, 4)
    for _ in range(2):
        hits = index.search(x[::450], k=4)
        assert_same_bits(hits.ids, ids)
        assert_same_bits(hits.scores, scores)
        index.optimize()


@pytest.mark.parametrize(("entries", "grouped"), [(8191, False), (8192, True)])
def test_hn_vectors_are_grouped_from_8192_entries_on(entries: int, grouped: bool) -> None:
    x = clustered(entries)
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA)
    index.add(x)
    assert (index._core.ungrouped < entries) is grouped
    assert index.verify(x[:5], index.search(x[:5], k=3)).ok


def test_an_index_regroups_itself_when_most_entries_lie_in_no_cell() -> None:
    x = clustered(60_000)
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA)
    index.add(x[:20_000])
    for first in range(20_000, 60_000, 4000):
        index.add(x[first : first + 4000])
    assert index._core.ungrouped <= len(x) / 2
    assert index.verify(x[:5], index.search(x[:5], k=3)).ok


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 1), ({"cells": False}, 0), ({"engine": "paper"}, 0)],
    ids=["where they do not pay", "cells=False", "paper"],
)
def test_small_additions_do_not_fit_again_and_again(
    options: dict[str, object], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = hiernorm.normalize(random_rows(48_000, D), MAJOR, 0.9)
    index = hiernorm.Index(D, major=MAJOR, alpha=0.9, **options)  # type: ignore[arg-type]
    index.add(x[:20_000])
    calls = []
    optimize = hiernorm.Index.optimize
    monkeypatch.setattr(
        hiernorm.Index, "optimize", lambda self: (calls.append(len(self)), optimize(self))
    )
    for first in range(20_000, 48_000, 1000):
        index.add(x[first : first + 1000])
    assert len(calls) <= most


@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_range_search_skips_cells_and_finds_all(metric: str) -> None:
    x = clustered(4000) * np.float32(2)
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA, metric=metric, cells=True)
    index.add(x)
    plain = hiernorm.Index(D, metric=metric, engine="exhaustive")
    plain.add(x)
    threshold = 0.9 if metric == "cosine" else 3.6
    found, expected = index.range(x[:20], threshold), plain.range(x[:20], threshold)
    assert_same_bits(found.ids, expected.ids)
    assert_same_bits(found.scores, expected.scores)
    assert (found.certificate.work["scanned"] < len(x) / 2).all()


def test_cells_are_for_the_cascade() -> None:
    with pytest.raises(ValueError, match="cells are for engine 'cascade', not for 'paper'"):
        hiernorm.Index(D, major=MAJOR, alpha=ALPHA, engine="paper", cells=True)

"""Verification finds what was tampered with; the digest tells databases apart."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import hiernorm
from hiernorm.reference import Float32Array
from support import filled, hn_rows, make_index, random_rows

D, MAJOR, ALPHA = 24, 6, 0.25


@pytest.fixture
def queries() -> Float32Array:
    return hn_rows(8, D, MAJOR, ALPHA, seed=1)


@pytest.fixture(
    params=[
        "hn-cascade",
        "hn-cells",
        "hn-paper",
        "plain-cascade",
        "plain-cells",
        "plain-exhaustive",
    ]
)
def index(request: pytest.FixtureRequest) -> hiernorm.Index:
    return filled(request.param, hn_rows(500, D, MAJOR, ALPHA), MAJOR, ALPHA)


def test_swapped_ids_are_reported(index: hiernorm.Index, queries: Float32Array) -> None:
    hits = index.search(queries, 5)
    right = hits.ids[2].copy()
    hits.ids[2, [1, 3]] = hits.ids[2, [3, 1]]
    verification = index.verify(queries, hits)
    assert not verification
    assert verification.differences == [
        f"query 2, rank 1: id {right[3]} returned as exact, exhaustive search gives {right[1]}"
    ]


def test_a_score_one_ulp_off_is_reported(index: hiernorm.Index, queries: Float32Array) -> None:
    hits = index.search(queries, 5)
    right = hits.scores[4, 0]
    hits.scores[4, 0] = np.nextafter(right, 2)
    (difference,) = index.verify(queries, hits).differences
    assert difference == (
        f"query 4, rank 0: score {np.nextafter(right, 2)!r} returned, "
        f"exhaustive search gives {right!r}"
    )


def test_other_queries_are_reported(index: hiernorm.Index, queries: Float32Array) -> None:
    hits = index.search(queries, 5)
    assert len(index.verify(queries[::-1], hits).differences) == len(queries)


def test_an_index_that_has_grown_is_reported(index: hiernorm.Index, queries: Float32Array) -> None:
    hits = index.search(queries, 5)
    index.add(queries[:2])
    assert index.verify(queries, hits).differences == [
        "the certificate speaks of 500 entries, the index now has 502: search again"
    ]


def _soft(kind: str, queries: Float32Array) -> tuple[hiernorm.Index, hiernorm.Hits, int]:
    """A soft answer and a query of it that was not proved exact."""
    index = filled(kind, hn_rows(500, D, MAJOR, ALPHA), MAJOR, ALPHA)
    hits = index.search(queries, 5, beta=0)
    assert index.verify(queries, hits).ok
    inexact = np.flatnonzero(~hits.certificate.exact)
    return index, hits, int(inexact[0])


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper"])
def test_tampered_scores_of_soft_answers_are_reported(kind: str, queries: Float32Array) -> None:
    index, hits, query = _soft(kind, queries)
    hits.scores[query, 0] = np.nextafter(hits.scores[query, 0], 2)
    assert index.verify(queries, hits).differences == [
        f"query {query}: scores returned are not those of the ids returned"
    ]


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper"])
def test_tampered_ids_of_soft_answers_are_reported(kind: str, queries: Float32Array) -> None:
    index, hits, query = _soft(kind, queries)
    hits.ids[query, [0, 1]] = hits.ids[query, [1, 0]]
    assert index.verify(queries, hits).differences == [
        f"query {query}: scores returned are not those of the ids returned"
    ]


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper"])
def test_a_gap_that_is_too_small_is_reported(kind: str, queries: Float32Array) -> None:
    """The best hit is replaced by the worst entry: the certificate no longer covers it."""
    index, hits, query = _soft(kind, queries)
    everything = index.search(queries[query], 500)
    hits.ids[query] = everything.ids[0, -5:]
    hits.scores[query] = everything.scores[0, -5:]
    assert not index.verify(queries, hits).ok


def test_an_unknown_id_of_a_soft_answer_is_reported(queries: Float32Array) -> None:
    index, hits, query = _soft("hn-cascade", queries)
    hits.ids[query, 0] = 10**9
    assert not index.verify(queries, hits).ok


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper"])
def test_an_entry_returned_twice_by_a_soft_answer_is_reported(
    kind: str, queries: Float32Array
) -> None:
    index, hits, query = _soft(kind, queries)
    hits.ids[query, 1], hits.scores[query, 1] = hits.ids[query, 0], hits.scores[query, 0]
    assert not index.verify(queries, hits).ok


KINDS_OF_ONE_DATABASE = ("hn-cascade", "hn-cells", "hn-paper", "hn-exhaustive")


def test_the_digest_is_that_of_the_database() -> None:
    """Not of the order of insertion, the parts it came in, the engine, or the fit."""
    x = hn_rows(300, D, MAJOR, ALPHA)
    expected = filled("hn-cascade", x, MAJOR, ALPHA).digest
    order = np.random.default_rng(0).permutation(300)
    for kind in KINDS_OF_ONE_DATABASE:
        index = make_index(kind, D, MAJOR, ALPHA)
        for part in np.split(order, [1, 17, 200]):
            index.add(x[part], part)
        assert index.digest == expected
        index.optimize()
        assert index.digest == expected
        assert index.search(x[:1]).certificate.digest == expected
        assert copy.copy(index).digest == expected


def test_the_digest_depends_on_every_bit() -> None:
    x = hn_rows(300, D, MAJOR, ALPHA)
    digests = {filled("hn-cascade", x, MAJOR, ALPHA).digest}
    for row, dimension, bit in [(0, 0, 0), (299, D - 1, 0), (150, 7, 31), (3, 3, 22)]:
        changed = x.copy()
        changed.view(np.uint32)[row, dimension] ^= np.uint32(1 << bit)
        digests.add(filled("hn-cascade", changed, MAJOR, ALPHA).digest)
    ids = np.arange(300)
    ids[299] = 300
    digests.add(filled("hn-cascade", x, MAJOR, ALPHA, ids=ids).digest)
    digests.add(filled("hn-cascade", x[:-1], MAJOR, ALPHA).digest)
    digests.add(filled("hn-cascade", x, MAJOR, 0.125).digest)
    digests.add(filled("hn-cascade", x, MAJOR + 1, ALPHA).digest)
    digests.add(filled("hn-cascade", x, MAJOR, ALPHA, "cosine").digest)
    digests.add(filled("plain-cascade", x, MAJOR).digest)
    assert len(digests) == 11
    assert all(len(digest) == 64 for digest in digests)


def test_a_certificate_keeps_the_digest_of_what_was_searched() -> None:
    x = random_rows(100, 8)
    index = hiernorm.Index(8)
    index.add(x[:60])
    expected = index.digest
    certificate = index.search(x[:1]).certificate
    index.add(x[60:])
    assert certificate.digest == expected
    assert index.digest != expected

"""Certificates: consistent, verifiable, and valid proofs in soft mode too."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hiernorm
from hiernorm import reference
from hiernorm.reference import Float32Array
from strategies import Data, databases, hn_databases
from support import (
    KINDS,
    METRICS,
    assert_same_bits,
    assert_same_hits,
    every_kind_and_metric,
    expected_hits,
    filled,
    hn_rows,
    raises_text,
    random_rows,
)

SOFT_KINDS = ("hn-cascade", "hn-cells", "hn-paper")
D, MAJOR, ALPHA = 24, 6, 0.25


@cache
def _rows() -> Float32Array:
    return hn_rows(800, D, MAJOR, ALPHA)


@cache
def _queries() -> Float32Array:
    return hn_rows(12, D, MAJOR, ALPHA, seed=1)


@cache
def _index(kind: str, metric: str = "ip") -> hiernorm.Index:
    return filled(kind, _rows(), MAJOR, ALPHA, metric)


def _assert_consistent(index: hiernorm.Index, hits: hiernorm.Hits) -> None:
    certificate = hits.certificate
    assert certificate.entries == len(index)
    assert len(certificate) == len(hits)
    sifted, tightened, settled = (
        certificate.work[step] for step in ("sifted", "tightened", "settled")
    )
    assert (settled <= tightened).all()
    assert (tightened <= sifted).all()
    assert (sifted <= len(index)).all()
    assert (settled >= (hits.ids >= 0).sum(axis=1)).all()
    np.testing.assert_array_equal(certificate.phase2_share, sifted / max(len(index), 1))
    assert_same_bits(certificate.kth_score, hits.scores[:, -1])
    nothing_skipped = np.isneginf(certificate.skipped_bound)
    below = certificate.skipped_bound < certificate.kth_score
    np.testing.assert_array_equal(certificate.exact, below | nothing_skipped)
    assert (certificate.gap[certificate.exact] == 0).all()
    assert (certificate.gap[~certificate.exact] >= 0).all()


@every_kind_and_metric
@pytest.mark.parametrize("k", [1, 10, 800, 801])
def test_fields_are_consistent_and_searches_exact(kind: str, metric: str, k: int) -> None:
    index = _index(kind, metric)
    hits = index.search(_queries(), k)
    _assert_consistent(index, hits)
    assert hits.certificate.exact.all()
    assert index.verify(_queries(), hits).ok


def test_skipped_entries_are_really_not_read() -> None:
    for kind in SOFT_KINDS:
        assert (_index(kind).search(_queries(), 1).certificate.work["settled"] < 800).all()


@every_kind_and_metric
def test_nothing_skipped_scores_higher_than_the_certificate_says(kind: str, metric: str) -> None:
    x, queries = random_rows(3000, 24) + 2, random_rows(6, 24, seed=1) + 2
    index = filled(kind, x, 7, metric=metric)
    hits = index.search(queries, 4)
    assert index.verify(queries, hits).ok
    for q, proof in zip(queries, hits.certificate, strict=True):
        scores = np.sort(reference.canonical_scores(q, x, metric))[::-1]
        if proof.settled < len(x):
            assert scores[proof.settled] <= proof.skipped_bound < proof.kth_score


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "plain-cascade", "plain-cells"])
def test_most_entries_are_ruled_out_by_their_major(kind: str, metric: str) -> None:
    """The bound is worth something: far from every entry is read in full."""
    centres = random_rows(40, 32, seed=3) * 4
    x = np.repeat(centres, 100, axis=0) + random_rows(4000, 32) * np.float32(0.3)
    queries = x[::500] + np.float32(0.01)
    hits = filled(kind, x, 8, metric=metric).search(queries, 3)
    assert_same_hits(hits, expected_hits(queries, x, 3, metric))
    assert hits.certificate.exact.all()
    assert hits.certificate.work["settled"].mean() < 400


def test_the_exhaustive_engine_reads_everything() -> None:
    certificate = _index("hn-exhaustive").search(_queries(), 1).certificate
    np.testing.assert_array_equal(certificate.work["settled"], np.full(12, 800))
    assert np.isneginf(certificate.skipped_bound).all()


def test_an_empty_index_certifies_an_empty_answer() -> None:
    index = hiernorm.Index(D, major=MAJOR, alpha=ALPHA)
    hits = index.search(_queries(), 3)
    _assert_consistent(index, hits)
    assert hits.certificate.exact.all()
    assert index.verify(_queries(), hits).ok


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.one_of(databases(), hn_databases()), k=st.integers(1, 12))
def test_every_certificate_verifies(kind: str, data: Data, k: int) -> None:
    index = filled(kind, data.x, data.major, data.alpha)
    hits = index.search(data.queries, k)
    _assert_consistent(index, hits)
    assert hits.certificate.exact.all()
    assert index.verify(data.queries, hits).differences == []


@pytest.mark.parametrize("kind", SOFT_KINDS)
@pytest.mark.parametrize("metric", ["ip", "cosine"])
@settings(max_examples=25)
@given(data=hn_databases(), k=st.integers(1, 12), share=st.floats(0, 1))
def test_soft_answers_are_what_their_certificates_say(
    kind: str, metric: str, data: Data, k: int, share: float
) -> None:
    index = filled(kind, data.x, data.major, data.alpha, metric)
    hits = index.search(data.queries, k, beta=share * data.alpha)
    _assert_consistent(index, hits)
    ids, scores = expected_hits(data.queries, data.x, k, metric)
    exact = hits.certificate.exact
    assert_same_bits(hits.ids[exact], ids[exact])
    assert_same_bits(hits.scores[exact], scores[exact])
    soft = ~exact
    reachable = hits.certificate.kth_score[soft] + hits.certificate.gap[soft]
    assert (scores[soft, -1] <= reachable).all()
    assert index.verify(data.queries, hits).differences == []


@pytest.mark.parametrize("kind", SOFT_KINDS)
@pytest.mark.parametrize("stride", [1, 3])
def test_soft_answers_over_many_tiles_are_what_their_certificates_say(
    kind: str, stride: int
) -> None:
    x, q = hn_rows(20_000, D, MAJOR, ALPHA, seed=2), _queries()
    ids = np.arange(0, len(x), stride)
    index = filled(kind, x, MAJOR, ALPHA)
    hits = index.search(q, 5, beta=0.3 * ALPHA, where=ids)
    expected_ids, scores = expected_hits(q, x[ids], 5)
    exact = hits.certificate.exact
    assert_same_bits(hits.ids[exact], ids[expected_ids[exact]])
    reachable = hits.certificate.kth_score + np.where(exact, 0, hits.certificate.gap)
    assert (scores[:, -1] <= reachable).all()


@pytest.mark.parametrize("kind", SOFT_KINDS)
@given(data=st.one_of(databases(), hn_databases()))
def test_beta_of_alpha_is_always_exact(kind: str, data: Data) -> None:
    index = filled(kind, data.x, data.major, data.alpha)
    hits = index.search(data.queries, 5, beta=data.alpha)
    assert hits.certificate.exact.all()
    ids, scores = expected_hits(data.queries, data.x, 5)
    assert_same_bits(hits.ids, ids)
    assert_same_bits(hits.scores, scores)


@pytest.mark.parametrize("kind", SOFT_KINDS)
def test_beta_of_zero_can_miss_and_says_so(kind: str) -> None:
    """All but one minor are orthogonal to the query's; the one that is parallel is skipped."""
    q = np.float32([[0.8, 0, 0.6, 0]])
    x = np.tile(np.float32([0.79, 0.1, 0, 0.6]), (2000, 1))
    x[1500] = np.float32([0.75, 0.2, 0.6, 0])
    index = filled(kind, x, 2, 0.36)
    hits = index.search(q, 1, beta=0)
    assert hits.ids.item() == 0
    assert not hits.certificate.exact[0]
    ids, scores = expected_hits(q, x, 1)
    assert ids.item() == 1500
    assert hits.scores.item() < scores.item() <= hits.scores.item() + hits.certificate.gap[0]
    assert index.verify(q, hits).ok


@pytest.mark.parametrize("kind", SOFT_KINDS)
def test_some_soft_answers_are_not_proved(kind: str) -> None:
    hits = _index(kind).search(_queries(), 10, beta=0)
    assert not hits.certificate.exact.all()


@pytest.mark.parametrize("kind", SOFT_KINDS)
def test_some_soft_answers_are_proved_all_the_same(kind: str) -> None:
    """The nearest neighbour is the query itself, the others are far."""
    hits = _index(kind).search(_rows()[:5], 1, beta=0.2 * ALPHA)
    assert hits.certificate.exact.any()
    exact = hits.certificate.exact
    np.testing.assert_array_equal(hits.ids[exact, 0], np.arange(5)[exact])


@pytest.mark.parametrize("kind", SOFT_KINDS)
def test_soft_mode_reads_less(kind: str) -> None:
    soft, exact = (_index(kind).search(_queries(), 10, beta=beta) for beta in (0, None))
    assert soft.certificate.work["sifted"].sum() < exact.certificate.work["sifted"].sum()
    for step in ("tightened", "settled"):
        assert soft.certificate.work[step].sum() <= exact.certificate.work[step].sum()


def test_certificates_are_readable() -> None:
    hits = _index("hn-cascade").search(_queries(), 10)
    certificate = hits.certificate
    assert repr(certificate).startswith("Certificate(queries=12, entries=800, exact=12, mean_ph")
    assert repr(hits) == "Hits(queries=12, k=10)"
    proof = certificate[3]
    assert str(proof).startswith("exact: 800 entries, ")
    assert f"database {certificate.digest[:12]}" in str(proof)
    assert proof.kth_score == hits.scores[3, -1]
    assert [each.kth_score for each in certificate] == hits.scores[:, -1].tolist()
    soft = _index("hn-cascade").search(_queries(), 10, beta=0).certificate
    inexact = next(proof for proof in soft if not proof.exact)
    assert str(inexact).startswith(f"within {inexact.gap:.3g} of exact: ")
    empty = _index("hn-cascade").search(np.zeros((0, D)), 10)
    assert "queries=0" in repr(empty.certificate)


def test_verify_needs_the_queries_of_the_hits() -> None:
    index = _index("hn-cascade")
    hits = index.search(_queries(), 3)
    with raises_text(ValueError, "11 queries, but hits of 12"):
        index.verify(_queries()[:11], hits)


def test_plain_and_random_vectors_verify_too() -> None:
    x = random_rows(500, 20)
    index = hiernorm.Index(20)
    index.add(x)
    assert index.verify(x[:9], index.search(x[:9], 7)).ok

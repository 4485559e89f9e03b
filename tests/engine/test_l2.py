"""Metric l2: canonical distances, certified bounds, and the answers of exhaustive search."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given

import hiernorm
from hiernorm import reference
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from strategies import Data, databases
from support import (
    assert_same_bits,
    assert_same_hits,
    expected_hits,
    filled,
    hn_rows,
    pickled,
    raises_text,
    random_rows,
)
from worst_cases import CASES, right_answer, worst_case

KINDS = (
    "hn-cascade",
    "hn-cells",
    "hn-exhaustive",
    "plain-cascade",
    "plain-cells",
    "plain-exhaustive",
)
"""All but the paper's engine, which searches by inner products."""


def exact_distance(q: Float32Array, row: Float32Array) -> Fraction:
    """The squared distance in rational arithmetic."""
    pairs = zip(q.tolist(), row.tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


@given(data=databases(entries=12, dims=70, queries=1))
def test_canonical_distances_are_within_rounding_of_the_exact_ones(data: Data) -> None:
    q = data.queries[0]
    depth = -(-len(q) // reference.LANES) + 4 + 3
    for row, distance in zip(data.x, reference.canonical_distance(q, data.x), strict=True):
        exact = exact_distance(q, row)
        assert abs(exact - Fraction(float(distance))) <= Fraction(101 * depth, 100 * 2**53) * exact


def test_distances_are_summed_in_the_order_of_products() -> None:
    q, x = random_rows(1, 37)[0], random_rows(20, 37, seed=1)
    squares = (q.astype(np.float64) - x.astype(np.float64)) ** 2
    assert_same_bits(reference.canonical_distance(q, x), reference.canonical_sum(squares))


def test_the_score_of_an_equal_vector_is_zero_without_a_sign() -> None:
    x = random_rows(3, 5)
    scores = reference.canonical_scores(x[0], x, "l2")
    assert_same_bits(scores[:1], np.zeros(1))
    assert (scores[1:] < 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_worst_cases(isa: str, name: str, kind: str) -> None:
    case = worst_case(name, "l2")
    index = filled(kind, case.x, case.major, case.alpha, "l2")
    for k in (1, 10):
        expected = right_answer(name, "l2", k)
        assert_same_hits(index.search(case.queries, k), expected)
        assert_same_hits(index.search(case.queries, k, batch_size=1, threads=1), expected)


@pytest.mark.parametrize("kind", KINDS)
@given(data=databases())
def test_hostile_vectors(kind: str, data: Data) -> None:
    hits = filled(kind, data.x, data.major, data.alpha, "l2").search(data.queries, 5)
    assert_same_hits(hits, expected_hits(data.queries, data.x, 5, "l2"))


@cache
def _of_size(n: int, kind: str) -> tuple[Float32Array, Float32Array]:
    rows = hn_rows(n + 5, 24, 7) if kind.startswith("hn") else random_rows(n + 5, 24) + 3
    return rows[:n], rows[-5:]


@cache
def _right(n: int, vectors: str, k: int) -> tuple[Int64Array, Float64Array]:
    x, queries = _of_size(n, vectors)
    return expected_hits(queries, x, k, "l2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 15, 17, 2047, 2049, 5000])
def test_every_size_and_k(isa: str, n: int, kind: str) -> None:
    x, queries = _of_size(n, kind.split("-")[0])
    index = filled(kind, x, 7, metric="l2")
    for k in (1, 7, n + 3):
        assert_same_hits(index.search(queries, k), _right(n, kind.split("-")[0], k))


@pytest.mark.parametrize("kind", ["hn-cascade", "plain-cascade"])
@pytest.mark.parametrize(("d", "major"), [(2, 1), (3, 2), (17, 4), (65, 1), (130, 64), (200, 199)])
def test_every_shape(isa: str, d: int, major: int, kind: str) -> None:
    x, queries = random_rows(300, d), random_rows(3, d, seed=1)
    index = filled(kind, x, major, metric="l2")
    assert_same_hits(index.search(queries, 5), expected_hits(queries, x, 5, "l2"))


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "plain-cascade", "plain-cells"])
def test_most_entries_are_ruled_out_by_their_major(kind: str) -> None:
    """The bound is worth something: far from every entry is read in full."""
    centres = random_rows(40, 32, seed=3) * 4
    x = np.repeat(centres, 100, axis=0) + random_rows(4000, 32) * np.float32(0.3)
    queries = x[::500] + np.float32(0.01)
    hits = filled(kind, x, 8, metric="l2").search(queries, 3)
    assert_same_hits(hits, expected_hits(queries, x, 3, "l2"))
    assert hits.certificate.exact.all()
    assert hits.certificate.work["settled"].mean() < 400


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_skipped_scores_higher_than_the_certificate_says(kind: str) -> None:
    x, queries = random_rows(3000, 24) + 2, random_rows(6, 24, seed=1) + 2
    index = filled(kind, x, 7, metric="l2")
    hits = index.search(queries, 4)
    assert index.verify(queries, hits).ok
    for q, proof in zip(queries, hits.certificate, strict=True):
        scores = np.sort(reference.canonical_scores(q, x, "l2"))[::-1]
        if proof.settled < len(x):
            assert scores[proof.settled] <= proof.skipped_bound < proof.kth_score


@pytest.mark.parametrize("kind", KINDS)
def test_range_finds_all_within_a_distance(isa: str, kind: str) -> None:
    x, queries = random_rows(2100, 12), random_rows(3, 12, seed=1)
    index = filled(kind, x, 5, metric="l2")
    for threshold in (-30.0, -9.0, -1.0, 0.0):
        for q, (ids, scores) in zip(queries, index.range(queries, threshold), strict=True):
            right = reference.exhaustive_range(q, x, np.arange(len(x)), threshold, "l2")
            np.testing.assert_array_equal(ids, right[0])
            assert_same_bits(scores, right[1])


@pytest.mark.parametrize("kind", KINDS)
def test_entries_far_from_those_it_was_fitted_on(isa: str, kind: str) -> None:
    near, far = random_rows(300, 20), random_rows(300, 20, seed=1) * np.float32(1000)
    index = filled(kind, near, 5, metric="l2")
    index.add(far)
    queries = np.concatenate([random_rows(2, 20, seed=2), far[:2]])
    x = np.concatenate([near, far])
    assert_same_hits(index.search(queries, 10), expected_hits(queries, x, 10, "l2"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_answers_alike(kind: str) -> None:
    x = random_rows(500, 12)
    index = filled(kind, x, 4, metric="l2")
    twin = pickled(index)
    assert (twin.major, twin.digest) == (index.major, index.digest)
    assert_same_hits(twin.search(x[:5], 3), index.search(x[:5], 3))


def test_the_major_is_the_one_asked_for() -> None:
    assert filled("hn-cascade", random_rows(50, 12), 4, metric="l2").major == 4


def test_what_is_meant_for_inner_products_is_refused() -> None:
    with raises_text(
        ValueError, "engine 'paper' is Algorithm 1, by inner products: metric l2 is not"
    ):
        hiernorm.Index(8, major=4, alpha=0.125, metric="l2", engine="paper")
    with raises_text(
        ValueError, "beta is a share of inner products: soft mode is not for metric l2"
    ):
        filled("hn-cascade", hn_rows(20, 8, 3), 3, metric="l2").search(np.ones(8), beta=0.1)

"""The executable specification: canonical scores, order, and bounds that hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from hiernorm import reference
from hiernorm.reference import Float32Array
from strategies import Data, databases, hn_databases
from support import assert_same_bits, canonical_error, exact_dot, hn_rows, random_rows


@given(data=databases(entries=12, dims=70, queries=1))
def test_canonical_scores_are_within_rounding_of_the_exact_ones(data: Data) -> None:
    q = data.queries[0]
    for row, score in zip(data.x, reference.canonical_dot(q, data.x), strict=True):
        assert abs(exact_dot(q, row) - Fraction(float(score))) <= canonical_error(q, row)


def _exact_distance(q: Float32Array, row: Float32Array) -> Fraction:
    """The squared distance in rational arithmetic."""
    pairs = zip(q.tolist(), row.tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


@given(data=databases(entries=12, dims=70, queries=1))
def test_canonical_distances_are_within_rounding_of_the_exact_ones(data: Data) -> None:
    q = data.queries[0]
    depth = -(-len(q) // reference.LANES) + 4 + 3
    for row, distance in zip(data.x, reference.canonical_distance(q, data.x), strict=True):
        exact = _exact_distance(q, row)
        assert abs(exact - Fraction(float(distance))) <= Fraction(101 * depth, 100 * 2**53) * exact


def test_products_are_exact() -> None:
    q = np.float32([1 + 2**-23, 0])
    score = reference.canonical_dot(q, q[np.newaxis])[0]
    assert score == (1 + 2.0**-23) ** 2 == 1 + 2.0**-22 + 2.0**-46


@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 31, 33, 100])
def test_sums_are_taken_in_the_documented_order(d: int) -> None:
    """Written out with Python floats: sixteen lanes, then halves."""
    products = np.random.default_rng(d).standard_normal((3, d)) * 10.0 ** np.arange(d)
    for row, total in zip(products.tolist(), reference.canonical_sum(products), strict=True):
        lanes = [0.0] * 16
        for j, product in enumerate(row):
            lanes[j % 16] += product
        for half in (8, 4, 2, 1):
            lanes = [lanes[i] + lanes[i + half] for i in range(half)]
        assert total == lanes[0]


def test_the_order_of_summation_matters_here() -> None:
    """Else the test above could not fail."""
    products = np.random.default_rng(1).standard_normal((50, 100))
    one_by_one = np.array([sum(row) for row in products.tolist()])
    assert (reference.canonical_sum(products) != one_by_one).any()


def test_results_are_ordered_by_score_then_id() -> None:
    scores = np.array([1.0, 3.0, 2.0, 3.0, -np.inf, 2.0])
    ids = np.array([5, 9, 4, -8, 0, 3])
    np.testing.assert_array_equal(ids[reference.rank(scores, ids)], [-8, 9, 3, 4, 5, 0])


def test_cosine_is_the_product_over_the_norms() -> None:
    q, x = random_rows(1, 37)[0], random_rows(20, 37, seed=1)
    norms = np.sqrt([reference.canonical_dot(row, row[np.newaxis])[0] for row in x])
    q_norm = np.sqrt(reference.canonical_dot(q, q[np.newaxis])[0])
    assert_same_bits(
        reference.canonical_scores(q, x, "cosine"), reference.canonical_dot(q, x) / (q_norm * norms)
    )


def test_distances_are_summed_in_the_order_of_products() -> None:
    q, x = random_rows(1, 37)[0], random_rows(20, 37, seed=1)
    squares = (q.astype(np.float64) - x.astype(np.float64)) ** 2
    assert_same_bits(reference.canonical_distance(q, x), reference.canonical_sum(squares))


def test_the_score_of_an_equal_vector_is_zero_without_a_sign() -> None:
    x = random_rows(3, 5)
    scores = reference.canonical_scores(x[0], x, "l2")
    assert_same_bits(scores[:1], np.zeros(1))
    assert (scores[1:] < 0).all()


@pytest.mark.parametrize("alpha", [0.01, 0.125, 0.5])
def test_algorithm_1_finds_the_nearest_neighbour(alpha: float) -> None:
    x = hn_rows(400, 32, 8, alpha)
    ids = np.arange(len(x))
    evaluated = []
    for q in hn_rows(10, 32, 8, alpha, seed=1):
        found, cost = reference.algorithm_1(q, x, 8, alpha)
        assert found == reference.exhaustive_search(q, x, ids, 1)[0][0]
        evaluated.append(cost)
    assert min(evaluated) < len(x)


@given(data=databases())
def test_certified_bounds_hold_for_any_finite_vectors(data: Data) -> None:
    for q in data.queries:
        bounds = reference.certified_bound(q, data.x, data.major)
        assert (bounds >= reference.canonical_dot(q, data.x)).all()


def test_certified_bounds_hold_where_they_are_tight() -> None:
    x = hn_rows(2000, 40, 9)
    q = hn_rows(1, 40, 9, seed=1)[0]
    x[:, 9:] = q[9:]
    assert (reference.certified_bound(q, x, 9) >= reference.canonical_dot(q, x)).all()


def _assert_certified_equals_exhaustive(data: Data) -> None:
    ids = np.arange(len(data.x))[::-1].copy()
    for q in data.queries:
        for k in (1, 5):
            found, scores, evaluated = reference.certified_search(q, data.x, ids, k, data.major)
            expected_ids, expected_scores = reference.exhaustive_search(q, data.x, ids, k)
            np.testing.assert_array_equal(found, expected_ids)
            assert_same_bits(scores, expected_scores)
            assert len(found) <= evaluated <= len(data.x)


@given(data=databases(entries=60, dims=30, queries=1))
def test_certified_search_equals_exhaustive_search(data: Data) -> None:
    _assert_certified_equals_exhaustive(data)


@given(data=hn_databases(entries=60))
def test_certified_search_equals_exhaustive_search_of_hn_vectors(data: Data) -> None:
    _assert_certified_equals_exhaustive(data)


def test_a_range_holds_every_score_from_the_threshold_up() -> None:
    q, x = random_rows(1, 8)[0], random_rows(50, 8, seed=1)
    ids = np.arange(50)
    scores = reference.canonical_scores(q, x)
    threshold = float(np.sort(scores)[20])
    found, found_scores = reference.exhaustive_range(q, x, ids, threshold)
    assert set(found) == set(ids[scores >= threshold])
    assert len(found) == 30
    np.testing.assert_array_equal(found_scores, np.sort(scores)[20:][::-1])

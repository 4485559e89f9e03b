"""Why the bounds are what they are: rational arithmetic, and the search that is not quite exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import hiernorm
from hiernorm import reference
from hiernorm.reference import Float32Array
from strategies import Data, databases, hn_databases
from support import KINDS, assert_same_hits, canonical_error, exact_dot, expected_hits, filled


def _assert_no_better_entry_was_skipped(data: Data, kind: str, k: int) -> None:
    hits = filled(kind, data.x, data.major, data.alpha).search(data.queries, k)
    for q, ids in zip(data.queries, hits.ids, strict=True):
        scores = [exact_dot(q, row) for row in data.x]
        errors = [canonical_error(q, row) for row in data.x]
        found = set(ids[ids >= 0].tolist())
        worst = min(found, key=lambda i: scores[i])
        for i in set(range(len(data.x))) - found:
            assert scores[i] <= scores[worst] + errors[i] + errors[worst]


@pytest.mark.parametrize(
    "kind", ["hn-cascade", "hn-cells", "hn-paper", "plain-cascade", "plain-cells"]
)
@settings(max_examples=25)
@given(data=databases(entries=30, dims=20, queries=1))
def test_nothing_skipped_is_better_in_rational_arithmetic(kind: str, data: Data) -> None:
    _assert_no_better_entry_was_skipped(data, kind, k=3)


@pytest.mark.parametrize(
    "kind", ["hn-cascade", "hn-cells", "hn-paper", "plain-cascade", "plain-cells"]
)
@settings(max_examples=10)
@given(data=hn_databases(entries=60, dims=24))
def test_nothing_skipped_is_better_among_hn_vectors(kind: str, data: Data) -> None:
    _assert_no_better_entry_was_skipped(data, kind, k=3)


def _dot_float32(a: Float32Array, b: Float32Array) -> np.float32:
    total = np.float32(0)
    for product in a * b:
        total += product
    return total


def naive_algorithm_1(q: Float32Array, x: Float32Array, major: int, alpha: float) -> int:
    """Algorithm 1 as one would first write it: float32, the nominal alpha, no slack."""
    s = [_dot_float32(q[:major], row[:major]) for row in x]
    best = int(np.argmax(s))
    s_best = _dot_float32(q, x[best])
    for i, row in enumerate(x):
        if i == best or s[i] + np.float32(alpha) <= s_best:
            continue
        score = _dot_float32(q, row)
        if score > s_best:
            s_best, best = score, i
    return best


def _near_tie(
    alpha: float, near: list[int], far: list[int], minor: int
) -> tuple[Float32Array, Float32Array]:
    """A query; an entry with its major and the opposite minor; one with another major, its minor.

    The majors are chosen so that both entries score the same in the reals: 1 - 2 alpha. What is
    stored is float32, and there the second entry is better.
    """
    features = [near + [1] * minor, near + [-1] * minor, far + [1] * minor]
    q, *x = hiernorm.normalize(features, len(near), alpha)
    return q, np.stack(x)


FLOAT32_SUMS_ERR = _near_tie(1 / 4, [1, 0, 0], [1, 2, 2], minor=1)
MINORS_EXCEED_ALPHA = _near_tie(1 / 3, [1, 0], [0, 1], minor=17)


def test_the_naive_algorithm_returns_a_wrong_neighbour() -> None:
    """Float32 sums err, and no slack pays for it.

    The vectors are normalised, the minors are exactly (0.5,), so their product is exactly alpha:
    everything the paper asks for holds. The entries' exact scores differ by 1.8e-8, less than an
    ulp of float32 at 1/2. The first entry has the best major and a float32 score of 0.5; the
    second entry's bound, 0.24999999 + 0.25, rounds to 0.5, and "<=" skips it: the better one.
    """
    q, x = FLOAT32_SUMS_ERR
    assert q[3] == 0.5
    assert exact_dot(q, x[1]) - exact_dot(q, x[0]) > Fraction(17, 10**9)
    assert naive_algorithm_1(q, x, major=3, alpha=1 / 4) == 0


def test_nominal_alpha_is_no_bound_even_without_rounding() -> None:
    """Float32 vectors do not satisfy Eq. (1): here the minors' product exceeds alpha.

    All sums are as good as exact (canonical float64), yet Algorithm 1 with the nominal alpha = 1/3
    skips the better entry: the product of its minor with the query's, 17 times the square of
    float32(sqrt(1/51)), is above 1/3. Bounds must use the norms that were measured.
    """
    q, x = MINORS_EXCEED_ALPHA
    assert exact_dot(q[2:], q[2:]) > Fraction(1 / 3)
    assert exact_dot(q, x[1]) - exact_dot(q, x[0]) > Fraction(12, 10**9)
    assert reference.algorithm_1(q, x, major=2, alpha=1 / 3)[0] == 0
    assert naive_algorithm_1(q, x, major=2, alpha=1 / 3) == 0


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("data", "major", "alpha"),
    [(FLOAT32_SUMS_ERR, 3, 1 / 4), (MINORS_EXCEED_ALPHA, 2, 1 / 3)],
    ids=["float32-sums-err", "minors-exceed-alpha"],
)
def test_the_index_is_right_where_the_naive_algorithm_is_not(
    isa: str, data: tuple[Float32Array, Float32Array], major: int, alpha: float, kind: str
) -> None:
    q, x = data
    hits = filled(kind, x, major, alpha).search(q, k=1)
    assert hits.ids.item() == 1
    assert_same_hits(hits, expected_hits(q[np.newaxis], x, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_near_ties_far_apart_in_a_large_database(isa: str, kind: str) -> None:
    """The near tie hides among entries that are worse, in the same tile and in others."""
    q, pair = MINORS_EXCEED_ALPHA
    x = np.tile(hiernorm.normalize([-1, 0] + [1] * 17, 2, 1 / 3), (3000, 1))
    x[[5, 2900]] = pair
    hits = filled(kind, x, 2, 1 / 3).search(q, k=2)
    np.testing.assert_array_equal(hits.ids, [[2900, 5]])

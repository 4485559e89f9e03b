"""Databases made to break a search that is only almost exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from support import expected_hits

N, D, MAJOR = 300, 40, 9


@dataclass(frozen=True)
class Case:
    """A database, queries and the split to search them with."""

    x: Float32Array
    queries: Float32Array
    major: int = MAJOR
    alpha: float = 0.125

    def directed(self) -> Case:
        """Without zero vectors, for which the cosine has no value."""
        x, queries = (rows[rows.any(axis=1)] for rows in (self.x, self.queries))
        return Case(x, queries, self.major, self.alpha)


def _gaussian(n: int, seed: int) -> Float32Array:
    return np.random.default_rng(seed).standard_normal((n, D)).astype(np.float32)


def _hn(n: int, seed: int, alpha: float = 0.125) -> Float32Array:
    return hiernorm.normalize(_gaussian(n, seed), MAJOR, alpha)


def random_hn() -> Case:
    return Case(_hn(N, 1), _hn(4, 2))


def random_plain() -> Case:
    return Case(_gaussian(N, 3), _gaussian(4, 4))


def exact_ties() -> Case:
    x = np.tile(_hn(N // 10, 5), (10, 1))
    return Case(x, np.concatenate([x[:2], _hn(2, 6)]))


def all_equal() -> Case:
    x = np.tile(_hn(1, 7), (N, 1))
    return Case(x, np.concatenate([x[:1], -x[:1], _hn(2, 8)]))


def one_ulp_apart() -> Case:
    x = np.tile(_hn(1, 9), (N, 1))
    rng = np.random.default_rng(10)
    place = (np.arange(N), rng.integers(0, D, N))
    x[place] = np.nextafter(x[place], np.float32(np.inf))
    return Case(x, np.concatenate([x[:2], _hn(2, 11)]))


def best_major_worst_minor() -> Case:
    """The closer the major to the query's, the more the minor points away from it."""
    queries = _hn(2, 12)
    rng = np.random.default_rng(13)
    closeness = np.linspace(0, 1, N)[:, np.newaxis]
    x = rng.standard_normal((N, D)) * 0.3
    x[:, :MAJOR] += closeness * queries[0, :MAJOR]
    x[:, MAJOR:] += (0.5 - closeness) * 4 * queries[0, MAJOR:]
    return Case(hiernorm.normalize(x, MAJOR, 0.125), queries)


def minors_parallel() -> Case:
    """The bound on the minor is tight for every entry, or for its opposite."""
    queries = _hn(2, 14)
    x = _hn(N, 15)
    x[:, MAJOR:] = queries[0, MAJOR:]
    x[::3, MAJOR:] *= -1
    return Case(x, queries)


def residuals_along_the_query(part: slice) -> Case:
    """What 8-bit codes cannot express points where the query does: its bound is tight.

    An outlier of 127 makes the step of the codes 1. Entry 7 has codes 3 and residuals 0.49, entry 3
    has higher codes but a score a little below it.
    """
    x = np.zeros((N, 9), np.float32)
    x[:, part] = -3
    x[0, part] = [-127, 0, 0, 0]
    x[3, part] = [4, 4, 3, 2.95]
    x[7, part] = 3.49
    q = np.zeros((1, 9), np.float32)
    q[:, part] = 1
    return Case(x, q, major=4)


def major_residuals_along_the_query() -> Case:
    return residuals_along_the_query(slice(0, 4))


def minor_residuals_along_the_query() -> Case:
    case = residuals_along_the_query(slice(4, 8))
    case.x[:, 0] = 1
    case.queries[:, 0] = 1
    return case


def alpha_zero() -> Case:
    return Case(_hn(N, 16, 0.0), _hn(4, 17, 0.0), alpha=0.0)


def alpha_almost_one() -> Case:
    return Case(_hn(N, 18, 0.999), _hn(4, 19, 0.999), alpha=0.999)


def denormals() -> Case:
    return Case(_gaussian(N, 20) * np.float32(1e-40), _gaussian(4, 21) * np.float32(1e-40))


def smallest_denormals() -> Case:
    rng = np.random.default_rng(22)
    smallest = np.float32(2.0**-149)
    x, queries = (rng.integers(-2, 3, (n, D)).astype(np.float32) * smallest for n in (N, 4))
    return Case(x, queries)


def huge() -> Case:
    return Case(_gaussian(N, 23) * np.float32(6e37), _gaussian(4, 24) * np.float32(6e37))


def tiny() -> Case:
    return Case(_gaussian(N, 25) * np.float32(1e-30), _gaussian(4, 26))


def huge_and_tiny_rows() -> Case:
    rng = np.random.default_rng(27)
    scale = (10 ** rng.uniform(-42, 37, (N, 1))).astype(np.float32)
    x = _gaussian(N, 28) * scale
    return Case(x, np.concatenate([x[:3], _gaussian(2, 29)]))


def huge_and_tiny_values() -> Case:
    rng = np.random.default_rng(30)
    scale = (10 ** rng.uniform(-42, 37, (N, D))).astype(np.float32)
    x = _gaussian(N, 31) * scale
    return Case(x, np.concatenate([x[:3], _gaussian(2, 32)]))


def one_huge_outlier() -> Case:
    x = _gaussian(N, 33)
    x[100] *= np.float32(1e37)
    return Case(x, np.concatenate([_gaussian(3, 34), x[100:101]]))


def huge_minor_tiny_major() -> Case:
    x, queries = _gaussian(N, 35), _gaussian(4, 36)
    x[:, :MAJOR] *= np.float32(1e-38)
    x[:, MAJOR:] *= np.float32(1e37)
    return Case(x, queries)


def zero_majors() -> Case:
    x, queries = _gaussian(N, 37), _gaussian(4, 38)
    x[:, :MAJOR] = 0
    queries[0, :MAJOR] = 0
    return Case(x, queries)


def some_zero_parts() -> Case:
    x, queries = _hn(N, 39), _hn(4, 40)
    x[::3, :MAJOR] = 0
    x[1::3, MAJOR:] = 0
    queries[1, :MAJOR] = 0
    queries[2, MAJOR:] = 0
    return Case(x, queries)


def zero_vectors() -> Case:
    x, queries = _gaussian(N, 41), _gaussian(4, 42)
    x[::2] = 0
    queries[0] = 0
    return Case(x, queries)


def only_zero_vectors() -> Case:
    zero = np.zeros((N, D), np.float32)
    return Case(zero, np.concatenate([_hn(2, 43), zero[:1]]))


def integers() -> Case:
    rng = np.random.default_rng(44)
    x, queries = (rng.integers(-2, 3, (n, D)).astype(np.float32) for n in (N, 4))
    return Case(x, queries)


def bytes_like_sift() -> Case:
    rng = np.random.default_rng(45)
    x, queries = (rng.integers(0, 256, (n, D)).astype(np.float32) for n in (N, 4))
    return Case(x, queries)


def one_hot() -> Case:
    x = np.tile(np.eye(D, dtype=np.float32), (8, 1))
    x[::5] *= -1
    return Case(x, np.concatenate([x[:3], _gaussian(2, 46)]))


def negative_zeros() -> Case:
    x = np.where(_gaussian(N, 47) > 0.5, np.float32(1), np.float32(-0.0))
    return Case(x, np.concatenate([-x[:2], np.full((1, D), -0.0, np.float32)]))


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        random_hn,
        random_plain,
        exact_ties,
        all_equal,
        one_ulp_apart,
        best_major_worst_minor,
        minors_parallel,
        major_residuals_along_the_query,
        minor_residuals_along_the_query,
        alpha_zero,
        alpha_almost_one,
        denormals,
        smallest_denormals,
        huge,
        tiny,
        huge_and_tiny_rows,
        huge_and_tiny_values,
        one_huge_outlier,
        huge_minor_tiny_major,
        zero_majors,
        some_zero_parts,
        zero_vectors,
        only_zero_vectors,
        integers,
        bytes_like_sift,
        one_hot,
        negative_zeros,
    )
}


@cache
def worst_case(name: str, metric: str) -> Case:
    """The case of this name; without zero vectors for the cosine."""
    case = CASES[name]()
    return case.directed() if metric == "cosine" else case


@cache
def right_answer(name: str, metric: str, k: int) -> tuple[Int64Array, Float64Array]:
    """The reference's answer to the case."""
    case = worst_case(name, metric)
    return expected_hits(case.queries, case.x, k, metric)

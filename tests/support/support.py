"""What the tests share: expected answers, data, comparisons of bits."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest

import hiernorm
from hiernorm import reference
from hiernorm.reference import Float32Array, Float64Array, Int64Array

KINDS = (
    "hn-cascade",
    "hn-cells",
    "hn-paper",
    "hn-exhaustive",
    "hn-flat",
    "plain-cascade",
    "plain-cells",
    "plain-exhaustive",
    "plain-flat",
)
"""Vectors and engine; "cells" is the cascade with cells however few the entries."""
METRICS = ("ip", "cosine", "l2")
every_kind_and_metric = pytest.mark.parametrize(
    ("kind", "metric"),
    [(k, m) for k in KINDS for m in METRICS if (k, m) != ("hn-paper", "l2")],
)
"""The paper's engine searches by inner products."""


def make_index(
    kind: str, dim: int, major: int | None, alpha: float = 0.125, metric: str = "ip"
) -> hiernorm.Index:
    """An index of one of KINDS; a plain one takes ``major`` as a wish or None."""
    vectors, engine = kind.split("-")
    if kind == "plain-cascade" and major is None:
        major = min(15, dim - 1)  # few entries get no codes unless they are asked for
    return hiernorm.Index(
        dim,
        major=major,
        alpha=alpha if vectors == "hn" else None,
        metric=metric,
        engine="cascade" if engine == "cells" else engine,
        cells=True if engine == "cells" else None,
    )


def filled(
    kind: str,
    x: Float32Array,
    major: int | None,
    alpha: float = 0.125,
    metric: str = "ip",
    ids: Int64Array | None = None,
) -> hiernorm.Index:
    """An index of ``kind`` with the rows of ``x``."""
    index = make_index(kind, x.shape[1], major, alpha, metric)
    index.add(x, ids)
    return index


def pickled(index: hiernorm.Index) -> hiernorm.Index:
    """What comes back from a pickle of the index."""
    twin: hiernorm.Index = pickle.loads(pickle.dumps(index))
    return twin


def random_rows(n: int, d: int, seed: int = 0) -> Float32Array:
    """Gaussian rows ``(n, d)``."""
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def hn_rows(n: int, d: int, major: int, alpha: float = 0.125, seed: int = 0) -> Float32Array:
    """Normalised Gaussian rows ``(n, d)``."""
    return hiernorm.normalize(random_rows(n, d, seed), major, alpha)


def expected_hits(
    queries: Float32Array,
    x: Float32Array,
    k: int,
    metric: str = "ip",
    ids: Int64Array | None = None,
) -> tuple[Int64Array, Float64Array]:
    """The reference's ids and scores ``(m, k)``, filled as the index fills them."""
    ids = np.arange(len(x), dtype=np.int64) if ids is None else ids
    all_ids = np.full((len(queries), k), -1, dtype=np.int64)
    all_scores = np.full((len(queries), k), -np.inf)
    for i, q in enumerate(queries):
        found, scores = reference.exhaustive_search(q, x, ids, k, metric)
        all_ids[i, : len(found)] = found
        all_scores[i, : len(found)] = scores
    return all_ids, all_scores


def assert_same_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    """Same type, same shape, same bits: -0 is not 0."""
    assert actual.dtype == expected.dtype
    bits = {4: np.int32, 8: np.int64}[actual.dtype.itemsize]
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(
        np.ascontiguousarray(actual).view(bits), np.ascontiguousarray(expected).view(bits)
    )


def assert_same_hits(
    hits: hiernorm.Hits, expected: hiernorm.Hits | tuple[Int64Array, Float64Array]
) -> None:
    """Ids and scores are the same bits."""
    if isinstance(expected, hiernorm.Hits):
        expected = expected.ids, expected.scores
    assert_same_bits(hits.ids, expected[0])
    assert_same_bits(hits.scores, expected[1])


def exact_dot(q: Float32Array, row: Float32Array) -> Fraction:
    """The inner product in rational arithmetic, without any rounding."""
    return sum(
        (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(q, row, strict=True)), Fraction(0)
    )


def canonical_error(q: Float32Array, row: Float32Array) -> Fraction:
    """A bound on the rounding of a canonical score: additions behind one another times 2^-53."""
    depth = -(-len(q) // reference.LANES) + 4
    magnitude = sum(
        (abs(Fraction(float(a)) * Fraction(float(b))) for a, b in zip(q, row, strict=True)),
        Fraction(0),
    )
    return Fraction(101, 100) * depth * Fraction(1, 2**53) * magnitude


@contextmanager
def raises_text(error: type[Exception], text: str) -> Iterator[None]:
    """The block raises ``error`` with exactly this message."""
    with pytest.raises(error) as caught:
        yield
    assert caught.type is error
    assert caught.value.args[0] == text

"""Hypothesis strategies: databases of float32 vectors, from tame to hostile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hiernorm
from hiernorm.reference import Float32Array


@dataclass(frozen=True)
class Data:
    """A database, queries, and how to split them."""

    x: Float32Array
    queries: Float32Array
    major: int
    alpha: float

    def directed(self) -> Data:
        """Without zero vectors, for which the cosine has no value."""
        x, queries = (rows[rows.any(axis=1)] for rows in (self.x, self.queries))
        return Data(x, queries, self.major, self.alpha)


def _any_bits(rng: np.random.Generator, shape: tuple[int, int]) -> Float32Array:
    rows = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    return np.where(np.isfinite(rows), rows, np.float32(0))


def _few_values(rng: np.random.Generator, shape: tuple[int, int]) -> Float32Array:
    return rng.choice(np.float32([-1, 0, 0.5, 1, 1 + 2**-23, 1e-45]), shape)


def _few_scales(rng: np.random.Generator, shape: tuple[int, int]) -> Float32Array:
    scales = rng.choice(np.float32([1e-42, 1e-20, 1, 1e18, 3e37]), (shape[0], 1))
    return rng.standard_normal(shape).astype(np.float32) * scales


def _near_copies(rng: np.random.Generator, shape: tuple[int, int]) -> Float32Array:
    row = rng.standard_normal(shape[1]).astype(np.float32)
    ulps = rng.integers(-1, 2, shape).astype(np.int32)
    return (np.broadcast_to(row, shape).view(np.int32) + ulps).view(np.float32)


SHAPES_OF_DATA = (_any_bits, _few_values, _few_scales, _near_copies)
finite = st.floats(-(2.0**127), 2.0**127, width=32, allow_subnormal=True)


@st.composite
def databases(draw: st.DrawFn, entries: int = 200, dims: int = 90, queries: int = 3) -> Data:
    """Rows with random bits, with few values (ties), of many scales, one ulp apart, or drawn."""
    d = draw(st.integers(2, dims))
    n = draw(st.integers(1, entries))
    m = draw(st.integers(1, queries))
    make = draw(st.sampled_from((*SHAPES_OF_DATA, None)))
    if make is None:
        rows = draw(arrays(np.float32, (n + m, d), elements=finite))
    else:
        rows = make(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), (n + m, d))
    alpha = draw(st.sampled_from([0.0, 0.125, 0.5, 0.999]))
    return Data(rows[:n], rows[n:], draw(st.integers(1, d - 1)), alpha)


@st.composite
def hn_databases(draw: st.DrawFn, entries: int = 300, dims: int = 48) -> Data:
    """Normalised Gaussian rows with a few copies; the queries are entries and others."""
    d = draw(st.integers(2, dims))
    n = draw(st.integers(1, entries))
    major = draw(st.integers(1, d - 1))
    alpha = draw(st.sampled_from([0.01, 0.125, 0.5, 0.9]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = hiernorm.normalize(rng.standard_normal((n, d)), major, alpha)
    x[rng.integers(0, n, size=n // 8)] = x[0]
    others = hiernorm.normalize(rng.standard_normal((2, d)), major, alpha)
    return Data(x, np.concatenate([x[:2], others]), major, alpha)

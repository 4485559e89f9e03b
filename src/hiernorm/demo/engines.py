"""Comparison of the engines: same queries, same bits, different times."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

import numpy as np

from hiernorm.array_types import Float32Array
from hiernorm.hits import Hits
from hiernorm.index import Index
from hiernorm.settings import Engine

REPEATS = 3

TIMED = 500
"""Maximum number of queries that are timed; all are searched."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class EngineResult:
    """The answer and the speed of one engine.

    Attributes
    ----------
    name : str
        ``paper``, ``cascade`` or ``exhaustive``.
    hits : Hits
        Its answer, with the bits of exhaustive search.
    seconds : float
        Seconds per query: single queries, one thread, the fastest of a few rounds.
    """

    name: str
    hits: Hits
    seconds: float


@dataclass(frozen=True)
class EngineComparison:
    """All engines on the same vectors.

    Attributes
    ----------
    exhaustive : Engine
        The engine that computes every score.
    engines : list of Engine
        The other engines; the last one is the default.
    numpy_seconds : float
        Seconds per query of a NumPy product and partition; on one thread if threadpoolctl is
        installed.
    """

    exhaustive: EngineResult
    engines: list[EngineResult]
    numpy_seconds: float

    @property
    def best(self) -> EngineResult:
        """The engine that users get by default."""
        return self.engines[-1]


class DisagreementError(RuntimeError):
    """An engine did not return the answer of exhaustive search."""


def compare_engines(
    database: Float32Array,
    queries: Float32Array,
    k: int,
    major: int | None = None,
    alpha: float | None = None,
) -> EngineComparison:
    """Search with every engine; raise DisagreementError unless all answers have the same bits.

    Parameters
    ----------
    database, queries
        Vectors, (n, d) and (m, d).
    k
        Neighbours.
    major, alpha
        Parameters of Hierarchical Normalization; None for plain vectors, which have no ``paper``
        engine.

    Examples
    --------
    >>> from hiernorm import synthetic
    >>> data = synthetic.hierarchical(500, 4, major=16, alpha=1 / 8, seed=0)
    >>> result = compare_engines(data.database, data.queries, k=3, major=16, alpha=1 / 8)
    >>> [engine.name for engine in result.engines], len(result.best.hits)
    (['paper', 'cascade'], 4)
    """
    names: tuple[Engine, ...] = (
        ("exhaustive", "cascade") if alpha is None else ("exhaustive", "paper", "cascade")
    )
    timed = queries[:TIMED]
    done = []
    for name in names:
        index = Index(database.shape[1], major=major, alpha=alpha, engine=name)
        index.add(database)
        _, seconds = _measure_time(partial(index.search, timed, k=k, threads=1, batch_size=1))
        done.append(EngineResult(name, index.search(queries, k=k), seconds / len(timed)))
    truth, *others = done
    for engine in others:
        same_ids = np.array_equal(engine.hits.ids, truth.hits.ids)
        if not same_ids or not np.array_equal(engine.hits.scores, truth.hits.scores):
            raise DisagreementError(
                f"engine {engine.name} differs from exhaustive search; please report it"
            )
    with _one_blas_thread():
        _, numpy_seconds = _measure_time(lambda: _search_numpy(database, timed, k))
    return EngineComparison(truth, others, numpy_seconds / len(timed))


def count_missed(
    database: Float32Array, queries: Float32Array, hits: Hits, block: int = 512
) -> int:
    """Count the queries for which NumPy, in float64, finds a neighbour better than the first hit.

    It shares no code with the engines. Sums round in different orders, so scores that differ by no
    more than rounding are equal.
    """
    rounding = 128 * database.shape[1] * np.finfo(np.float64).eps
    entries = database.astype(np.float64)
    missed = 0
    for first in range(0, len(queries), block):
        scores = queries[first : first + block].astype(np.float64) @ entries.T
        found = np.take_along_axis(scores, hits.ids[first : first + block, :1], axis=1)[:, 0]
        missed += int((scores.max(axis=1) > found + rounding).sum())
    return missed


def _one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread if threadpoolctl is installed."""
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    limit: AbstractContextManager[object] = import_module("threadpoolctl").threadpool_limits(1)
    return limit


def _search_numpy(database: Float32Array, queries: Float32Array, k: int) -> None:
    """Search without an index: a product and a partition per query."""
    for query in queries:
        np.argpartition(database @ query, -k)[-k:]


def _measure_time(work: Callable[[], Result]) -> tuple[Result, float]:
    """Run ``work`` a few times; returns its result and the seconds of the fastest run."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)

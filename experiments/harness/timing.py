"""Interleaved timing: in every round each method gets its turn, so that drift hits all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from experiments.harness.conditions import Group, hold
from experiments.harness.methods import Method, Search
from hiernorm.reference import Float32Array, Int64Array

PROBE_QUERIES = {"calls": 4, "single": 4, "batch": 32}
"""Queries of the untimed call that warms caches up, and of the probe that plans the rounds."""

Clock = Callable[[], float]

LEAST_QUERIES = 4
LEAST_BATCH = 64


@dataclass(frozen=True)
class Effort:
    """How much time a measurement may take."""

    rounds: int = 5
    seconds: float = 0.2
    """Time of one method in one round, where the method is fast enough."""
    slow_seconds: float = 4.0
    """Time of one method in one group: a slow method sits out the later rounds."""


FULL = Effort()
QUICK = Effort(rounds=5, seconds=0.05, slow_seconds=2.0)
SMOKE = Effort(rounds=2, seconds=0.002, slow_seconds=0.1)
"""Only to see it work."""

EFFORTS = {"smoke": SMOKE, "quick": QUICK, "full": FULL}


@dataclass(frozen=True)
class Timing:
    """Seconds per query of one method, one value per round that it took part in."""

    rounds: tuple[float, ...]
    queries: int
    """Queries per round."""

    @property
    def median(self) -> float:
        """The value that is reported."""
        return median(self.rounds)


@dataclass(frozen=True)
class _Turn:
    """How much one method searches in one round, and for how many rounds."""

    queries: int
    repeats: int
    rounds: int


def measure_group(
    methods: Sequence[Method],
    queries: Float32Array,
    group: Group,
    effort: Effort,
    on_round: Callable[[], None] = lambda: None,
    clock: Clock = time.perf_counter,
) -> dict[str, Timing]:
    """Time all methods in one group; the result is keyed by method name.

    A slow method searches fewer queries per round, a very slow one takes part in fewer rounds; in
    a batch, where the number of queries matters, only a method too slow for one round gets fewer.
    From round to round the queries move on, so that every method sees easy and hard ones.
    With `clock=time.process_time`, other work on the machine is not taken for the method's.
    """
    seconds: dict[str, list[float]] = {method.name: [] for method in methods}
    with hold(group.threads, group.manner):
        turns = [
            _plan_turn(method.prepare(group), queries, group, effort, clock) for method in methods
        ]
        for number in range(effort.rounds):
            for method, turn in _rotated(list(zip(methods, turns, strict=True)), number):
                if number < turn.rounds:
                    search = method.prepare(group)
                    rows = _window(queries, number, turn.queries)
                    seconds[method.name].append(_time(search, rows, group, turn.repeats, clock))
            on_round()
    return {
        method.name: Timing(tuple(seconds[method.name]), turn.queries)
        for method, turn in zip(methods, turns, strict=True)
    }


def ratios(reference: Timing, timing: Timing) -> list[float]:
    """How many times faster than the reference, round by round."""
    return [slow / fast for slow, fast in zip(reference.rounds, timing.rounds, strict=False)]


def mean_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """How many times faster, by the times averaged over the runs in which both took part.

    Examples
    --------
    >>> mean_ratio([2.0, 4.0], [1.0, 1.0, 9.0])
    3.0
    """
    both = min(len(slow), len(fast))
    return sum(slow[:both]) / sum(fast[:both])


def recall(found: Int64Array, true: Int64Array, k: int) -> float:
    """Share of the true k nearest entries that were found."""
    hits = [np.isin(row[:k], truth[:k]).sum() for row, truth in zip(found, true, strict=True)]
    return float(np.sum(hits) / (len(true) * min(k, true.shape[1])))


def _plan_turn(
    search: Search, queries: Float32Array, group: Group, effort: Effort, clock: Clock
) -> _Turn:
    """Probe the method and share out the time it may take."""
    probe = queries[: PROBE_QUERIES[group.manner]]
    _time(search, probe, group, 1, clock)
    per_query = max(_time(search, probe, group, 1, clock), 1e-9)
    if group.manner == "batch":
        affordable = max(LEAST_BATCH, int(effort.slow_seconds / per_query))
    else:
        affordable = max(LEAST_QUERIES, int(effort.seconds / per_query))
    count = min(len(queries), affordable)
    turn_seconds = per_query * count
    return _Turn(
        queries=count,
        repeats=max(1, int(effort.seconds / turn_seconds)),
        rounds=min(effort.rounds, max(1, int(effort.slow_seconds / turn_seconds))),
    )


def _time(search: Search, rows: Float32Array, group: Group, repeats: int, clock: Clock) -> float:
    """Seconds per query, after an untimed call that warms caches up."""
    calls = [rows[i : i + 1] for i in range(len(rows))] if group.manner == "calls" else [rows]
    search(calls[0][:LEAST_QUERIES])
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        for _ in range(repeats):
            for call in calls:
                search(call)
        elapsed = clock() - start
    finally:
        if collecting:
            gc.enable()
    return elapsed / (repeats * len(rows))


def _window(queries: Float32Array, number: int, count: int) -> Float32Array:
    """Take the `count` queries of one round, following those of the round before."""
    start = number * count
    return np.take(queries, range(start, start + count), axis=0, mode="wrap")


def _rotated(pairs: list[tuple[Method, _Turn]], number: int) -> list[tuple[Method, _Turn]]:
    """Let another method begin in each round."""
    first = number % len(pairs)
    return pairs[first:] + pairs[:first]

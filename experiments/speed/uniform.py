"""Uniform random vectors, the data of FAISS's first tutorial: no rotation orders them.

What the planner chooses is timed beside FAISS's flat index: the time to build, single queries, and
one batch as large as the tutorial's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from experiments.harness.comparison import Build, DisagreementError, Measurement, Progress, Report
from experiments.harness.conditions import Group, hold
from experiments.harness.methods import Hiernorm, Method, flat_method
from experiments.harness.timing import Effort, measure_group, ratios, recall
from hiernorm.reference import Float32Array, Int64Array

K = 4
"""Hits per query, as in the tutorial."""


@dataclass(frozen=True)
class UniformCase:
    """Vectors uniform in the unit cube, and queries of the same kind."""

    n: int
    dim: int
    queries: int

    @property
    def name(self) -> str:
        """For example tutorial-n100000-d64."""
        return f"tutorial-n{self.n}-d{self.dim}"

    def draw(self, seed: int) -> tuple[Float32Array, Float32Array]:
        """The vectors ``(n, dim)`` and the queries."""
        rng = np.random.default_rng(seed)
        database = rng.random((self.n, self.dim), dtype=np.float32)
        return database, rng.random((self.queries, self.dim), dtype=np.float32)


FULL_UNIFORM = (UniformCase(100_000, 64, 10_000),)
SMOKE_UNIFORM = (UniformCase(2_000, 16, 100),)


def measure_uniform(
    cases: Sequence[UniformCase], effort: Effort, seed: int, report: Report, progress: Progress
) -> None:
    """Build and search every case with ours and with FAISS, one thread, squared distances."""
    for case in cases:
        progress.say(f"{case.name}: building")
        database, queries = case.draw(seed)
        methods: list[Method] = [Hiernorm("hiernorm cascade", metric="l2")]
        if "FAISS" not in report.missing:
            methods.append(flat_method("l2"))
        for method in methods:
            report.builds.append(_build(case, method, database, seed))
        truth = _truth(database, queries[:64])
        for group in (Group("single", K, 1), Group("batch", K, 1)):
            progress.say(f"{case.name}: {group.name}")
            timings = measure_group(methods, queries, group, effort)
            for method in methods:
                with hold(1, group.manner):
                    found = recall(method.prepare(group)(queries[:64]), truth, K)
                if method is methods[0] and found != 1.0:
                    raise DisagreementError(f"{method.name} is not exact in {case.name}")
                timing, flat = timings[method.name], timings[methods[-1].name]
                speedups = ratios(flat, timing) if len(methods) > 1 else []
                report.measurements.append(
                    Measurement(
                        case=case.name,
                        n=case.n,
                        major=None,
                        alpha=None,
                        **asdict(group),
                        family=method.family,
                        method=method.name,
                        seconds=timing.median,
                        seconds_rounds=list(timing.rounds),
                        queries=timing.queries,
                        speedup=float(np.median(speedups)) if speedups else None,
                        speedup_low=min(speedups, default=None),
                        speedup_high=max(speedups, default=None),
                        recall=found,
                    )
                )


def _build(case: UniformCase, method: Method, database: Float32Array, seed: int) -> Build:
    with hold(1, "batch"):
        start = time.perf_counter()
        method.build(database, seed)
        seconds = time.perf_counter() - start
    return Build.of_plain(case.name, method, database, seconds)


def _truth(database: Float32Array, queries: Float32Array) -> Int64Array:
    """Exact neighbours, by the engine that computes every canonical score."""
    exhaustive = Hiernorm("hiernorm exhaustive", "exhaustive", engine="exhaustive", metric="l2")
    exhaustive.build(database, 0)
    return exhaustive.hits(queries, Group("batch", K, 1)).ids

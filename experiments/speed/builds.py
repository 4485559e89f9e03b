"""The time to build: an index as a user makes it, with the threads that each library takes.

Cases of searches build with one thread. Here nothing is held: what a fit costs on a machine whose
processors are shared shows too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.harness.comparison import Build, Progress, Report
from experiments.harness.conditions import import_optional
from experiments.harness.methods import FaissFlat, Hiernorm, Method
from hiernorm.reference import Float32Array


@dataclass(frozen=True)
class BuildCase:
    """Vectors to index: their number, their dimensions, and how their energy is spread."""

    n: int
    dim: int
    kind: Literal["falling", "uniform"]
    """Gaussian with a falling spectrum, as embeddings have; or uniform in the unit cube."""

    @property
    def name(self) -> str:
        """For example build-falling-n500-d384."""
        return f"build-{self.kind}-n{self.n}-d{self.dim}"

    def draw(self, seed: int) -> Float32Array:
        """The vectors ``(n, dim)``."""
        rng = np.random.default_rng(seed)
        if self.kind == "uniform":
            return rng.random((self.n, self.dim), dtype=np.float32)
        spectrum = 1 / np.sqrt(np.arange(1, self.dim + 1))
        rows: Float32Array = (rng.standard_normal((self.n, self.dim)) * spectrum).astype(np.float32)
        return rows


FULL_BUILDS = (
    BuildCase(500, 384, "falling"),
    BuildCase(5_000, 768, "falling"),
    BuildCase(100_000, 64, "uniform"),
)
SMOKE_BUILDS = (BuildCase(300, 16, "falling"), BuildCase(2_000, 16, "uniform"))


def measure_builds(
    cases: Sequence[BuildCase], rounds: int, seed: int, report: Report, progress: Progress
) -> None:
    """Build every case with ours and with FAISS in turns; the least time counts."""
    for case in cases:
        progress.say(f"{case.name}: building")
        database = case.draw(seed)
        methods: list[Method] = [Hiernorm("hiernorm cascade", metric="l2")]
        faiss = import_optional("faiss")
        if faiss is not None:
            methods.append(FaissFlat(faiss))
        times: dict[str, list[float]] = {method.name: [] for method in methods}
        for _ in range(rounds):
            for method in methods:
                start = time.perf_counter()
                method.build(database, seed)
                times[method.name].append(time.perf_counter() - start)
        for method in methods:
            seconds = min(times[method.name])
            report.builds.append(Build.of_plain(case.name, method, database, seconds))

"""The run: each case's data, indexes, proof of agreement, recall and timings, into a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from hiernorm.bench import data, methods
from hiernorm.bench.cases import Case, Group, Scale, plan_cases, plan_file_cases, plan_groups
from hiernorm.bench.conditions import hold
from hiernorm.bench.goals import check_goals
from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.bench.measure import Timing, measure_group, ratios, recall
from hiernorm.bench.methods import Method, OwnEngine
from hiernorm.bench.report import Build, Measurement, Report, Work
from hiernorm.certificate import Certificate
from hiernorm.reference import Float32Array, Int64Array

RECALL_K = 10
"""Recall is taken from one search at this k; the first hit serves k=1."""

RECALL_SECONDS = 20.0
"""A method for which all queries would take longer is judged by fewer."""


class DisagreementError(RuntimeError):
    """One of our engines did not return the exhaustive answer: nothing else matters then."""


class Progress(Protocol):
    """Hears how far the run is."""

    def start(self, total: float) -> None:
        """Begin; `total` is the sum of all advances to come."""

    def say(self, doing: str) -> None:
        """Name what begins now."""

    def advance(self, share: float) -> None:
        """Note that a part is done."""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    scale: Scale
    threads: int
    seed: int = 0
    only: tuple[str, ...] = ()
    database_file: Path | None = None
    queries_file: Path | None = None


def run(options: Options, progress: Progress) -> Report:
    """Measure all cases and check the goals."""
    cases, load = _plan(options)
    report = Report(
        machine=describe_machine(),
        options={
            **asdict(options),
            "database_file": str(options.database_file) if options.database_file else None,
            "queries_file": str(options.queries_file) if options.queries_file else None,
        },
        missing=methods.missing_peers(),
    )
    bystanders = Bystanders()
    progress.start(sum(CaseRun.cost(case, options) for case in cases))
    for case in cases:
        progress.say(f"{case.name}: data")
        CaseRun(case, options, *load(case), report, progress).run()
    report.goals = check_goals(report)
    report.machine["share_of_other_processes"] = bystanders.share()
    return report


def _plan(
    options: Options,
) -> tuple[list[Case], Callable[[Case], tuple[Float32Array, Float32Array]]]:
    """List the cases, and give the function that yields the vectors of each."""
    scale = options.scale
    if options.database_file is None:
        cases = plan_cases(scale, options.only)
        return cases, lambda case: data.draw(case, scale.queries, options.seed)
    rows = data.load(options.database_file, options.queries_file, scale.queries)
    cases = plan_file_cases(len(rows.database), scale, options.only)
    return cases, lambda case: data.normalise(rows, case)


class CaseRun:
    """One case: the steps share its vectors, its built methods and the true answer.

    ``groups`` are the ways of searching to time; by default those that the benchmark plans.
    """

    def __init__(
        self,
        case: Case,
        options: Options,
        database: Float32Array,
        queries: Float32Array,
        report: Report,
        progress: Progress,
        groups: Sequence[Group] | None = None,
    ) -> None:
        self.case = case
        self.options = options
        self.database = database
        self.queries = queries
        self.report = report
        self.progress = progress
        self.groups = plan_groups(case, options.threads) if groups is None else groups
        self.engines = methods.own_engines(case)
        self.methods: list[Method] = [*self.engines, *methods.peer_methods(case)]

    @staticmethod
    def cost(case: Case, options: Options) -> float:
        """Estimate of the time that a case takes, in units of one group of a small case."""
        groups = len(plan_groups(case, options.threads))
        return (groups + (2 if case.peers else 1)) * _size_weight(case)

    def run(self) -> None:
        """Build, prove agreement, then measure every group."""
        self._build()
        truth = self._agree()
        found = {method.name: self._find(method) for method in self.methods[1:]}
        self.progress.advance((2 if self.case.peers else 1) * _size_weight(self.case))
        step = _size_weight(self.case) / self.options.scale.rounds
        timed = self.methods if self.case.peers else self.methods[1:]
        for group in self.groups:
            self.progress.say(f"{self.case.name}: {group.name}")
            timings = measure_group(
                timed,
                self.queries,
                group,
                self.options.scale,
                on_round=lambda: self.progress.advance(step),
            )
            for method in timed:
                ids = truth if method is self.engines[0] else found[method.name]
                got = recall(ids, truth[: len(ids)], group.k)
                self.report.measurements.append(self._row(method, group, timings, got))

    def _build(self) -> None:
        """Build every index once, with one thread, and note the time it took."""
        built: set[str] = set()
        for method in self.methods:
            if method.index_name in built:
                continue
            built.add(method.index_name)
            self.progress.say(f"{self.case.name}: building {method.index_name}")
            with hold(1, "batch"):
                start = time.perf_counter()
                method.build(self.database, self.options.seed)
                seconds = time.perf_counter() - start
            memory = method.nbytes()
            self.report.builds.append(
                Build(
                    **self._labels(),
                    family=method.family,
                    method=method.index_name,
                    seconds=seconds,
                    memory_ratio=None if memory is None else memory / self.database.nbytes,
                )
            )

    def _agree(self) -> Int64Array:
        """Check our engines bit for bit against the exhaustive one; return the true ids."""
        self.progress.say(f"{self.case.name}: checking that our engines agree")
        judge, *others = self.engines
        together = Group("batch", RECALL_K, self.options.threads)
        with hold(together.threads, together.manner):
            true = judge.hits(self.queries, together)
            for engine in others:
                for group in (together, Group("single", RECALL_K, 1), Group("batch", 1, 1)):
                    hits = engine.hits(self.queries, group)
                    same_ids = np.array_equal(hits.ids, true.ids[:, : group.k])
                    if not same_ids or not np.array_equal(hits.scores, true.scores[:, : group.k]):
                        raise DisagreementError(
                            f"{engine.name} differs from exhaustive search in {self.case.name}, "
                            f"{group.name}"
                        )
                    if group is not together:
                        self._note_work(engine, hits.certificate, group.k)
        return true.ids

    def _note_work(self, engine: OwnEngine, certificate: Certificate, k: int) -> None:
        self.report.work.append(
            Work(
                case=self.case.name,
                family=engine.family,
                k=k,
                phase2_share=float(certificate.phase2_share.mean()),
                settled=float(certificate.work["settled"].mean()),
            )
        )

    def _find(self, method: Method) -> Int64Array:
        """Collect the ids that a method finds, for as many queries as its speed allows."""
        self.progress.say(f"{self.case.name}: recall of {method.name}")
        group = Group("batch", RECALL_K, self.options.threads)
        with hold(group.threads, group.manner):
            search = method.prepare(group)
            probe = self.queries[:16]
            start = time.perf_counter()
            search(probe)
            per_query = (time.perf_counter() - start) / len(probe)
            count = max(len(probe), int(RECALL_SECONDS / per_query))
            return search(self.queries[:count])

    def _row(
        self, method: Method, group: Group, timings: dict[str, Timing], got: float
    ) -> Measurement:
        timing, flat = timings[method.name], timings.get(methods.FaissFlat.name)
        speedups = [] if flat is None else ratios(flat, timing)
        return Measurement(
            **self._labels(),
            **asdict(group),
            family=method.family,
            method=method.name,
            seconds=timing.median,
            seconds_rounds=list(timing.rounds),
            queries=timing.queries,
            speedup=median(speedups) if speedups else None,
            speedup_low=min(speedups, default=None),
            speedup_high=max(speedups, default=None),
            recall=got,
        )

    def _labels(self) -> dict[str, Any]:
        major, alpha = self.case.point if self.case.point is not None else (None, None)
        return {"case": self.case.name, "n": self.case.n, "major": major, "alpha": alpha}


def _size_weight(case: Case) -> float:
    return 1 + case.n / 50_000

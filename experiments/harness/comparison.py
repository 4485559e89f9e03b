"""Methods compared on one database: built, proved to agree, judged by recall, timed in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from experiments.harness import methods
from experiments.harness.conditions import Group, Manner, hold
from experiments.harness.methods import Hiernorm, Method
from experiments.harness.opponents import Judge, Opponent, fixed_efs, graph_opponents, tune
from experiments.harness.points import Point, point_name
from experiments.harness.timing import Effort, Timing, measure_group, ratios, recall
from hiernorm.certificate import Certificate
from hiernorm.reference import Float32Array, Int64Array

RECALL_K = 10
"""Recall is taken from one search at this k; the first hit serves k=1."""

RECALL_SECONDS = 20.0
"""A method for which all queries would take longer is judged by fewer."""


class DisagreementError(RuntimeError):
    """One of our engines did not return the exhaustive answer: nothing else matters then."""


class Progress(Protocol):
    """Hears how far a run is."""

    def start(self, total: float) -> None:
        """Begin; `total` is the sum of all advances to come."""

    def say(self, doing: str) -> None:
        """Name what begins now."""

    def advance(self, share: float) -> None:
        """Note that a part is done."""


@dataclass(frozen=True)
class Case:
    """One database to search: its size and its normalisation (None: plain vectors)."""

    n: int
    point: Point | None
    peers: bool
    """Measure the peers too, not only our engines and FAISS flat."""
    graph: bool
    """Build hnswlib's graph, which takes minutes on a large database."""

    @property
    def name(self) -> str:
        """For example K16-a1/8-n99000, or plain-n99000."""
        return f"{point_name(self.point)}-n{self.n}"

    @property
    def weight(self) -> float:
        """Estimate of the time that one group of searches takes, 1 for a small database."""
        return 1 + self.n / 50_000


@dataclass(frozen=True)
class Measurement:
    """One method in one group of one case. Times are seconds per query."""

    case: str
    n: int
    major: int | None
    alpha: float | None
    manner: Manner
    k: int
    threads: int
    family: str
    method: str
    seconds: float
    seconds_rounds: list[float]
    queries: int
    speedup: float | None
    """Median over the rounds of (FAISS flat / this method); None without FAISS."""
    speedup_low: float | None
    speedup_high: float | None
    recall: float
    target: float | None = None
    """The recall that the method was tuned for, on other queries; None if it was not tuned."""
    setting: str = ""
    """What the tuning chose."""


@dataclass(frozen=True)
class Build:
    """What it took to build one method's index, with one thread."""

    case: str
    n: int
    major: int | None
    alpha: float | None
    family: str
    method: str
    seconds: float
    memory_ratio: float | None
    """Bytes of the index over bytes of the float32 vectors; None where a peer does not tell."""

    @classmethod
    def of_plain(cls, case: str, method: Method, database: Float32Array, seconds: float) -> Build:
        """Record what a method took for plain vectors ``(n, d)``."""
        memory = method.nbytes()
        return cls(
            case=case,
            n=len(database),
            major=None,
            alpha=None,
            family=method.family,
            method=method.index_name,
            seconds=seconds,
            memory_ratio=None if memory is None else memory / database.nbytes,
        )


@dataclass(frozen=True)
class Work:
    """What one of our engines left to do after the major scan."""

    case: str
    family: str
    k: int
    phase2_share: float
    """Mean share of the entries that the engine's own bound on the major left over."""
    settled: float
    """Mean number of entries whose canonical score was computed."""


@dataclass
class Report:
    """Rows of any number of cases: all that a run found out."""

    missing: dict[str, str] = field(default_factory=methods.missing_peers)
    """Peers that could not be measured, and why."""
    measurements: list[Measurement] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)

    def to_result(self) -> dict[str, Any]:
        """For a record."""
        return asdict(self)

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> Report:
        """Read a report back from a record's result."""
        kinds = {"measurements": Measurement, "builds": Build, "work": Work}
        rows = {name: [kind(**row) for row in result[name]] for name, kind in kinds.items()}
        return cls(missing=result["missing"], **rows)


class Comparison:
    """One case: the steps share its vectors, its built methods and the true answer.

    Parameters
    ----------
    case
        Which methods take part.
    database, queries
        Vectors, normalised as the case says.
    groups
        The ways of searching to time.
    effort, threads, seed
        Time per group; threads of what is not timed; seed of graphs.
    report
        Takes the rows.
    progress
        Hears of every step: :meth:`cost` in all.
    choosing
        Other queries, on which the settings of hnswlib are chosen; None: it is not tuned.
    efs
        Measure hnswlib at these too, with the usual number of links.
    graphs
        Keeps hnswlib's graphs for the next run.
    """

    def __init__(
        self,
        case: Case,
        database: Float32Array,
        queries: Float32Array,
        groups: Sequence[Group],
        effort: Effort,
        report: Report,
        progress: Progress,
        threads: int = 1,
        seed: int = 0,
        choosing: Float32Array | None = None,
        efs: Sequence[int] = (),
        graphs: Path | None = None,
    ) -> None:
        self.case = case
        self.database = database
        self.queries = queries
        self.choosing = choosing
        self.groups = groups
        self.effort = effort
        self.progress = progress
        self.threads = threads
        self.seed = seed
        self.report = report
        self.engines = methods.own_engines(case.point)
        self.methods: list[Method] = [*self.engines, *methods.exact_peers(case.peers)]
        if case.graph and choosing is None:
            self.methods += methods.graph_methods(efs)
        elif case.graph:
            tuned = graph_opponents(folder=graphs, timed_build=True)
            self.methods += fixed_efs(tuned, efs)
            self.methods += tuned

    @staticmethod
    def cost(case: Case, groups: int) -> float:
        """Estimate of the time that a case takes, in units of one group of a small case."""
        return (groups + (2 if case.peers else 1)) * case.weight

    def run(self) -> None:
        """Build, prove agreement, choose settings, then measure every group."""
        self._build()
        truth = self._agree()
        self._tune()
        found = {
            (method.name, k): self._find(method, k)
            for method in self.methods[1:]
            for k in (sorted({g.k for g in self.groups}) if _is_tuned(method) else [RECALL_K])
        }
        self.progress.advance((2 if self.case.peers else 1) * self.case.weight)
        step = self.case.weight / self.effort.rounds
        timed = self.methods if self.case.peers else self.methods[1:]
        for group in self.groups:
            self.progress.say(f"{self.case.name}: {group.name}")
            timings = measure_group(
                timed,
                self.queries,
                group,
                self.effort,
                on_round=lambda: self.progress.advance(step),
            )
            for method in timed:
                key = (method.name, group.k if _is_tuned(method) else RECALL_K)
                ids = truth if method is self.engines[0] else found[key]
                got = recall(ids, truth[: len(ids)], group.k)
                self.report.measurements.append(self._row(method, group, timings, got))

    def _build(self) -> None:
        """Build every index once, with one thread, and note the time it took."""
        built: set[str] = set()
        for method in sorted(self.methods, key=lambda method: not _is_tuned(method)):
            if method.index_name in built:
                continue
            built.add(method.index_name)
            self.progress.say(f"{self.case.name}: building {method.index_name}")
            with hold(1, "batch"):
                start = time.perf_counter()
                method.build(self.database, self.seed)
                seconds = time.perf_counter() - start
            memory = method.nbytes()
            if isinstance(method, Opponent):  # of its graphs the one that one thread has built
                first = method.structures[0]
                seconds, memory = first.build_seconds, first.nbytes()
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
        together = Group("batch", RECALL_K, self.threads)
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

    def _note_work(self, engine: Hiernorm, certificate: Certificate, k: int) -> None:
        self.report.work.append(
            Work(
                case=self.case.name,
                family=engine.family,
                k=k,
                phase2_share=float(certificate.phase2_share.mean()),
                settled=float(certificate.work["settled"].mean()),
            )
        )

    def _tune(self) -> None:
        """Choose the settings of opponents, by the answers of the cascade, which is proved."""
        if self.choosing is None:
            return
        self.progress.say(f"{self.case.name}: choosing settings of opponents")
        together = Group("batch", RECALL_K, self.threads)
        true = self.engines[1].hits(self.choosing, together).ids
        judge = Judge(self.database, self.choosing, true)
        tune(self.methods, judge, self.choosing, sorted({group.k for group in self.groups}))

    def _find(self, method: Method, k: int) -> Int64Array:
        """Collect the ids that a method finds, for as many queries as its speed allows."""
        self.progress.say(f"{self.case.name}: recall of {method.name}")
        group = Group("batch", k, self.threads)
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
        tuned = method if isinstance(method, Opponent) else None
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
            target=None if tuned is None else tuned.target,
            setting="" if tuned is None else tuned.choices[group.k].text,
        )

    def _labels(self) -> dict[str, Any]:
        major, alpha = self.case.point if self.case.point is not None else (None, None)
        return {"case": self.case.name, "n": self.case.n, "major": major, "alpha": alpha}


def _is_tuned(method: Method) -> bool:
    """Whether its setting depends on k."""
    return isinstance(method, Opponent)

"""What all parts of a reproduction share: variants, databases, finished runs, measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import hiernorm
from experiments.harness.comparison import Case, Comparison, Report
from experiments.harness.conditions import SINGLE
from experiments.harness.methods import HNSW_EFS, Method, flat_method
from experiments.harness.points import Point, point_name
from experiments.harness.records import Result, Store
from experiments.harness.timing import Timing, mean_ratio, measure_group, ratios
from experiments.reproduce.databases import Database, Databases
from experiments.reproduce.findings import EXPERIMENT
from experiments.reproduce.networks import Variant, Variants
from experiments.reproduce.options import Options
from hiernorm.learn.evaluate import Result as Quality
from hiernorm.learn.evaluate import evaluate_descriptors
from hiernorm.reference import Float32Array


@dataclass
class Work:
    """Options, variants, databases and finished runs.

    Attributes
    ----------
    say
        Hears what is being done; set by whoever shows progress.
    """

    options: Options
    say: Callable[[str], None] = lambda doing: None
    variants: Variants = field(init=False)
    databases: Databases = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        self.variants = Variants(options, lambda doing: self.say(doing))
        self.databases = Databases(options, lambda doing: self.say(doing))
        self.store = Store(options.out / "runs", EXPERIMENT, options.settings(), options.force)

    def variant(self, point: Point | None) -> Variant:
        """The baseline (None) or an HN variant, trained now if it has not been."""
        if point is None:
            return self.variants.plain
        self.say(f"{point_name(point)}: the network")
        return self.variants.make(point)

    def evaluate(self, scene: str, variant: Variant) -> Quality:
        """FPR@95 of a variant on a scene, with its interval, curve and energy."""
        found = variant.describe(self.databases.scene_features(scene, variant.backbone))
        rounds, seed = self.options.size.rounds, self.options.seed
        return evaluate_descriptors(self.databases.scene(scene), variant.name, found, rounds, seed)


@dataclass(frozen=True)
class Run:
    """One run of a part.

    Attributes
    ----------
    name
        Within the part; also of its JSON file.
    seconds
        To be expected at full size with ``--recipe turned`` on a quiet machine of two cores.
    make
        Runs it.
    """

    name: str
    seconds: float
    make: Callable[[], Result]


@dataclass(frozen=True)
class Part:
    """A table, figure or section of the paper.

    Attributes
    ----------
    name, title
        A word, and a line.
    plan
        Lists the runs; nothing is computed yet.
    """

    name: str
    title: str
    plan: Callable[[Work], list[Run]]


class _Progress:
    """Passes on what a comparison says; its advances are part of a run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def start(self, total: float) -> None:
        """Begin."""

    def advance(self, share: float) -> None:
        """Note that a part is done."""


def measure_case(work: Work, case: Case, data: Database, queries: int) -> Result:
    """Build, prove agreement, find recall and time the methods of a case.

    ``queries`` is how many at most: as in the paper, or more where recall is told to a thousandth.

    Returns
    -------
    The rows of a comparison, what the database consists of, and the Phase-2 shares.
    """
    size, report = work.options.size, Report()
    asked, choosing = data.queries[:queries], None
    if case.graph:  # the second half chooses the settings of hnswlib, and is not timed
        half = max(size.queries, len(asked) // 2)
        asked, choosing = asked[:half], asked[half:]
    run = Comparison(
        case,
        data.entries,
        asked,
        [SINGLE],
        size.effort,
        report,
        _Progress(work.say),
        seed=work.options.seed,
        choosing=choosing if choosing is not None and len(choosing) else None,
        efs=HNSW_EFS,
    )
    run.run()
    built = (engine.index for engine in run.engines if engine.family == "paper")
    index = next(built, None)
    return {
        **report.to_result(),
        "database": describe_database(data),
        "phase2": None if index is None else phase2_shares(index, data, queries),
    }


def measure_phase2(data: Database, point: Point, queries: int) -> Result:
    """Build an index for Algorithm 1 and measure :func:`phase2_shares`."""
    major, alpha = point
    index = hiernorm.Index(data.entries.shape[1], major=major, alpha=alpha, engine="paper")
    index.add(data.entries)
    return phase2_shares(index, data, queries)


def phase2_shares(index: hiernorm.Index, data: Database, queries: int) -> Result:
    """Mean shares of the entries that Algorithm 1 evaluates in full.

    ``matched``: of queries whose point the database shows; ``keypoints``: of any keypoints of
    photos that it has not, or None.
    """

    def share(rows: Float32Array) -> float | None:
        if not len(rows):
            return None
        return float(index.search(rows, 1, threads=1).certificate.phase2_share.mean())

    return {"matched": share(data.queries[:queries]), "keypoints": share(data.keypoints)}


def describe_database(data: Database) -> Result:
    """What the entries are."""
    return {"entries": len(data.entries), "own": data.own, "kinds": data.kinds}


def time_methods(work: Work, methods: Sequence[Method], data: Database) -> dict[str, Result]:
    """Time methods that are built already, FAISS flat beside them; keyed by their names."""
    flat = flat_method()
    flat.build(data.entries, work.options.seed)
    size = work.options.size
    timings = measure_group([flat, *methods], data.queries[: size.queries], SINGLE, size.effort)
    return {name: _summary(timings[flat.name], timing) for name, timing in timings.items()}


def _summary(flat: Timing, timing: Timing) -> Result:
    rates = ratios(flat, timing)
    return {
        "seconds_rounds": list(timing.rounds),
        "queries": timing.queries,
        "speedup": mean_ratio(flat.rounds, timing.rounds),
        "speedup_low": min(rates),
        "speedup_high": max(rates),
    }

"""The goals of the project, each looked up in a report's measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.harness.comparison import Build, Measurement, Report
from experiments.harness.conditions import Manner
from experiments.harness.points import FASTEST, RECOMMENDED, Point

BUSY_SHARE = 0.05
"""Share of other processes from which times, above all those of several threads, mislead."""

TRUSTED_RECALL = 0.999
"""The recall from which hnswlib counts as a rival of exact search."""


@dataclass(frozen=True)
class Goal:
    """A floor to stay above, an aim to reach, and what was measured (None: not in this run).

    A ratio of times per query also has the times: the one compared with, then ours, in seconds.
    """

    name: str
    unit: str
    floor: float
    aim: float
    more_is_better: bool
    measured: float | None
    times: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """`aim`, `floor`, `missed` or `not measured`."""
        if self.measured is None:
            return "not measured"
        sign = 1 if self.more_is_better else -1
        if sign * self.measured >= sign * self.aim:
            return "aim"
        return "floor" if sign * self.measured >= sign * self.floor else "missed"


def check_goals(report: Report) -> list[Goal]:
    """State every goal with what the report measured."""
    return [*_speed_goals(report), *_own_goals(report)]


def _speed_goals(report: Report) -> list[Goal]:
    most_threads = max((row.threads for row in report.measurements), default=1)

    def speed(
        name: str,
        rival: str,
        n: int,
        point: Point | None,
        floor: float,
        aim: float,
        manner: Manner = "single",
        threads: int = 1,
    ) -> Goal:
        rows = select(report.measurements, n, point, manner, 1, threads)
        other, own = fastest_rival(rows, rival), fastest_rival(rows, "cascade")
        return _ratio_goal(name, floor, aim, other, own)

    goals = [
        speed("99,000 entries: over FAISS flat", "flat", 99_000, RECOMMENDED, 60, 120),
        speed("99,000 entries: over the best Panorama", "panorama", 99_000, RECOMMENDED, 12, 25),
        speed("99,000 entries: over hnswlib", "hnswlib", 99_000, RECOMMENDED, 2, 5),
        speed("500,000 entries: over FAISS flat", "flat", 500_000, RECOMMENDED, 70, 120),
        speed("500,000 entries, K=8, a=1/32: over flat", "flat", 500_000, FASTEST, 100, 200),
        speed("5,000 entries: over FAISS flat", "flat", 5_000, RECOMMENDED, 25, 40),
        speed("1,000 entries: over FAISS flat", "flat", 1_000, RECOMMENDED, 5, 10),
        speed("5,000 entries: over hnswlib", "hnswlib", 5_000, RECOMMENDED, 10, 20),
        speed("1,000 entries: over hnswlib", "hnswlib", 1_000, RECOMMENDED, 10, 20),
        speed("99,000 plain vectors: over FAISS flat", "flat", 99_000, None, 25, 50),
    ]
    for threads in sorted({1, most_threads}):
        name = f"batch, 500,000 entries, {threads} thread{'s' * (threads > 1)}: over FAISS flat"
        goals.append(
            speed(name, "flat", 500_000, RECOMMENDED, 25, 60, manner="batch", threads=threads)
        )
    return goals


def _own_goals(report: Report) -> list[Goal]:
    one, ten = (
        fastest_rival(select(report.measurements, 99_000, RECOMMENDED, "single", k, 1), "cascade")
        for k in (1, 10)
    )
    share = _build_share(report, 500_000)
    memory = [row.memory_ratio for row in _own_builds(report) if row.memory_ratio is not None]
    return [
        _ratio_goal("99,000 entries: speed of k=10 over k=1", 0.7, 0.9, one, ten),
        Goal("overhead of a Python call", "us", 2.5, 1.5, False, _call_overhead(report)),
        Goal("500,000 entries: build time over hnswlib's", "%", 2, 0.5, False, share),
        Goal("memory over float32 vectors", "x", 1.35, 1.27, False, memory[-1] if memory else None),
    ]


def select(
    rows: Iterable[Measurement],
    n: int,
    point: Point | None,
    manner: Manner,
    k: int,
    threads: int,
) -> list[Measurement]:
    """Select the measurements of one group of one case."""
    major, alpha = point if point is not None else (None, None)
    wanted = (n, major, alpha, manner, k, threads)
    return [
        row
        for row in rows
        if (row.n, row.major, row.alpha, row.manner, row.k, row.threads) == wanted
    ]


def fastest_rival(
    rows: Iterable[Measurement], family: str, recall: float = TRUSTED_RECALL
) -> Measurement | None:
    """Choose the variant of a family to compare with: the fastest.

    Of hnswlib the first that was tuned for the recall, or has it where nothing was tuned (variants
    come in the order of recall).
    """
    variants = [row for row in rows if row.family == family]
    if family == "hnswlib":
        wanted = (row.recall if row.target is None else row.target for row in variants)
        variants = [row for row, got in zip(variants, wanted, strict=True) if got >= recall][:1]
    return min(variants, key=lambda row: row.seconds, default=None)


def _ratio_goal(
    name: str, floor: float, aim: float, other: Measurement | None, own: Measurement | None
) -> Goal:
    if other is None or own is None:
        return Goal(name, "x", floor, aim, True, None)
    # Rounds of FAISS flat and ours are compared one by one; all else by the medians.
    measured = own.speedup if other.family == "flat" else other.seconds / own.seconds
    return Goal(name, "x", floor, aim, True, measured, (other.seconds, own.seconds))


def _call_overhead(report: Report) -> float | None:
    """Microseconds per query that one call per query adds to one call for all."""
    manners: tuple[Manner, Manner] = ("calls", "single")
    apart, together = (
        fastest_rival(select(report.measurements, 1_000, RECOMMENDED, manner, 1, 1), "cascade")
        for manner in manners
    )
    if apart is None or together is None:
        return None
    return (apart.seconds - together.seconds) * 1e6


def _own_builds(report: Report) -> list[Build]:
    return [
        row
        for row in report.builds
        if row.family == "cascade" and (row.major, row.alpha) == RECOMMENDED
    ]


def _build_share(report: Report, n: int) -> float | None:
    """Our build time as a percentage of hnswlib's."""
    times = {
        row.family: row.seconds
        for row in report.builds
        if row.n == n and (row.major, row.alpha) == RECOMMENDED
    }
    if "cascade" not in times or "hnswlib" not in times:
        return None
    return 100 * times["cascade"] / times["hnswlib"]

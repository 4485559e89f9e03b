"""What the benchmark measures: cases (data), groups (ways of searching) and scales (how much)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

Manner = Literal["calls", "single", "batch"]
"""How queries reach a method.

calls   one Python call per query
single  all queries in one call, each searched by itself
batch   all queries in one call, work shared between them as the method likes
"""

Point = tuple[int, float]
"""A hierarchical normalisation: (major, alpha)."""

RECOMMENDED: Point = (16, 1 / 8)
FASTEST: Point = (8, 1 / 32)
ALL_POINTS: tuple[Point, ...] = tuple(
    (major, alpha) for major in (16, 8) for alpha in (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
)


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


@dataclass(frozen=True)
class Group:
    """One way of searching, in which all methods take turns."""

    manner: Manner
    k: int
    threads: int

    @property
    def name(self) -> str:
        """For example `single k=1, 1 thread`."""
        return f"{self.manner} k={self.k}, {self.threads} thread{'s' * (self.threads > 1)}"


@dataclass(frozen=True)
class Scale:
    """How much to measure."""

    sizes: tuple[int, ...]
    points: tuple[Point, ...]
    plain_size: int
    queries: int = 1024
    rounds: int = 5
    seconds: float = 0.2
    """Time of one method in one round, where the method is fast enough."""
    slow_seconds: float = 4.0
    """Time of one method in one group: a slow method sits out the later rounds."""
    graph_limit: int | None = None
    """Largest database for which hnswlib is built."""
    sweep_limit: int = 500_000
    """Largest database for which points other than the two recommended ones are measured."""


FULL = Scale(sizes=(1_000, 5_000, 99_000, 500_000), points=ALL_POINTS, plain_size=99_000)
LARGE = replace(FULL, sizes=(*FULL.sizes, 2_000_000))
QUICK = replace(
    FULL,
    sizes=(1_000, 5_000, 99_000),
    points=(RECOMMENDED,),
    rounds=5,
    seconds=0.05,
    slow_seconds=2.0,
    graph_limit=99_000,
)
SMOKE = replace(
    QUICK, sizes=(600,), plain_size=600, queries=64, rounds=2, seconds=0.002, slow_seconds=0.1
)


def plan_cases(scale: Scale, only: tuple[str, ...] = ()) -> list[Case]:
    """List the cases of a scale; `only` keeps those whose name contains one of its texts."""
    cases = []
    for n in scale.sizes:
        graph_fits = scale.graph_limit is None or n <= scale.graph_limit
        for point in scale.points:
            peers = point in (RECOMMENDED, FASTEST)
            if peers or n <= scale.sweep_limit:
                cases.append(Case(n, point, peers, graph=graph_fits and point == RECOMMENDED))
    cases.append(Case(scale.plain_size, None, peers=True, graph=True))
    return _keep_only(cases, only)


def plan_file_cases(n: int, scale: Scale, only: tuple[str, ...] = ()) -> list[Case]:
    """List the cases for a database of `n` rows from a file."""
    graph = scale.graph_limit is None or n <= scale.graph_limit
    cases = [Case(n, point, peers=True, graph=graph) for point in (RECOMMENDED, None)]
    return _keep_only(cases, only)


def plan_groups(case: Case, all_threads: int) -> list[Group]:
    """List the ways of searching a case: every one with peers, two without."""
    if not case.peers:
        return [Group("single", 1, 1), Group("batch", 1, 1)]
    ways: tuple[tuple[Manner, int], ...] = (
        ("calls", 1),
        ("single", 1),
        ("single", 10),
        ("batch", 1),
        ("batch", 10),
    )
    return [Group(*way, threads) for threads in sorted({1, all_threads}) for way in ways]


def point_name(point: Point | None) -> str:
    """Name a normalisation: K16-a1/8, or plain."""
    if point is None:
        return "plain"
    major, alpha = point
    return f"K{major}-a{Fraction(alpha).limit_denominator(1024)}"


def _keep_only(cases: list[Case], only: tuple[str, ...]) -> list[Case]:
    kept = [case for case in cases if not only or any(text in case.name for text in only)]
    if not kept:
        raise ValueError(
            f"no case matches {' or '.join(only)}; "
            f"there are {len(cases)}, from {cases[0].name} to {cases[-1].name}"
        )
    return kept

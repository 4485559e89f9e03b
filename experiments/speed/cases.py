"""What the benchmark measures: cases (data), groups (ways of searching) and scales (how much)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.harness import timing
from experiments.harness.comparison import Case
from experiments.harness.conditions import Group, Manner
from experiments.harness.points import ALL_POINTS, FASTEST, RECOMMENDED, Point
from experiments.speed.builds import FULL_BUILDS, SMOKE_BUILDS, BuildCase
from experiments.speed.uniform import FULL_UNIFORM, SMOKE_UNIFORM, UniformCase


@dataclass(frozen=True)
class Scale:
    """How much to measure."""

    sizes: tuple[int, ...]
    points: tuple[Point, ...]
    plain_size: int
    queries: int = 2048
    """Half of them are timed; the others choose the settings of hnswlib."""
    effort: timing.Effort = timing.FULL
    graph_limit: int | None = None
    """Largest database for which hnswlib is built."""
    sweep_limit: int = 500_000
    """Largest database for which points other than the two recommended ones are measured."""
    builds: tuple[BuildCase, ...] = FULL_BUILDS
    uniform: tuple[UniformCase, ...] = FULL_UNIFORM


FULL = Scale(sizes=(1_000, 5_000, 99_000, 500_000), points=ALL_POINTS, plain_size=99_000)
LARGE = replace(FULL, sizes=(*FULL.sizes, 2_000_000))
QUICK = replace(
    FULL,
    sizes=(1_000, 5_000, 99_000),
    points=(RECOMMENDED,),
    effort=timing.QUICK,
    graph_limit=99_000,
)
SMOKE = replace(
    QUICK,
    sizes=(600,),
    plain_size=600,
    queries=64,
    effort=timing.SMOKE,
    builds=SMOKE_BUILDS,
    uniform=SMOKE_UNIFORM,
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
    return _keep_only(cases, only, (*scale.builds, *scale.uniform))


def plan_file_cases(
    n: int, scale: Scale, only: tuple[str, ...] = (), hn: bool = False
) -> list[Case]:
    """List the cases for a database of `n` rows from a file; with `hn`, also one of HN vectors."""
    graph = scale.graph_limit is None or n <= scale.graph_limit
    points = (RECOMMENDED, None) if hn else (None,)
    cases = [Case(n, point, peers=True, graph=graph) for point in points]
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


def plan_builds(scale: Scale, only: tuple[str, ...] = ()) -> list[BuildCase]:
    """List the cases of the time to build; `only` as for the others."""
    return [case for case in scale.builds if _is_wanted(case.name, only)]


def plan_uniform(scale: Scale, only: tuple[str, ...] = ()) -> list[UniformCase]:
    """List the cases of uniform vectors; `only` as for the others."""
    return [case for case in scale.uniform if _is_wanted(case.name, only)]


def _is_wanted(name: str, only: tuple[str, ...]) -> bool:
    return not only or any(text in name for text in only)


def _keep_only(
    cases: list[Case], only: tuple[str, ...], others: Sequence[BuildCase | UniformCase] = ()
) -> list[Case]:
    kept = [case for case in cases if _is_wanted(case.name, only)]
    if not kept and not any(_is_wanted(case.name, only) for case in others):
        raise ValueError(
            f"no case matches {' or '.join(only)}; "
            f"there are {len(cases)}, from {cases[0].name} to {cases[-1].name}"
        )
    return kept

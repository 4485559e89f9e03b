"""Table 4: exact search beside hnswlib and FAISS at several sizes of the database."""

from __future__ import annotations

from functools import partial

from hiernorm.bench.cases import RECOMMENDED, Case, Point
from hiernorm.reproduce.measure import measure_case
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import POINTS, Part, Run, Work, slug


def plan(work: Work) -> list[Run]:
    """One run per size and alpha at K=16, on the first test scene, as in the paper.

    Peers are measured beside the recommended point. The size of Table 3 is measured for the other
    points there.
    """
    size = work.options.size
    major, _ = RECOMMENDED
    return [
        Run(f"n{n}-{slug(point)}", _expected(n, point), partial(_measure, work, n, point))
        for n in size.graph_entries
        for point in POINTS
        if point[0] == major and (point == RECOMMENDED or n != size.entries)
    ]


def _expected(n: int, point: Point) -> float:
    """The graph's construction is most of it."""
    return 8 + n / (600 if point == RECOMMENDED else 20_000)


def _measure(work: Work, n: int, point: Point) -> Result:
    data = work.warehouse.build(work.options.tests[0], work.variant(point), n)
    peers = point == RECOMMENDED
    case = Case(n, point, peers=peers, graph=peers)
    return measure_case(work, case, data, work.options.size.more_queries)


PART = Part("graphs", "Table 4: against hnswlib and FAISS", plan)

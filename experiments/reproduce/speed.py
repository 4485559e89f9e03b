"""Tables 2 and 3 and Figure 4: speed-up and Phase-2 share of all HN variants on both scenes."""

from __future__ import annotations

from functools import partial

from hiernorm.bench.cases import Case, Point
from hiernorm.reproduce.measure import measure_case
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import POINTS, Part, Run, Work, slug


def plan(work: Work) -> list[Run]:
    """One run per scene and variant; the plain baseline is searched by its lossless rotation."""
    return [
        Run(f"{scene}-{slug(point)}", 45, partial(_measure, work, scene, point))
        for scene in work.options.tests
        for point in (*POINTS, None)
    ]


def _measure(work: Work, scene: str, point: Point | None) -> Result:
    size = work.options.size
    data = work.warehouse.build(scene, work.variant(point), size.entries)
    case = Case(size.entries, point, peers=False, graph=False)
    return measure_case(work, case, data, size.queries)


PART = Part("speed", "Tables 2 and 3, Figure 4: speed-up and Phase-2 share", plan)

"""Future work, higher K: quality, Phase-2 share and speed at K = 24, 32 and 64."""

from __future__ import annotations

from functools import partial

from hiernorm.bench.cases import RECOMMENDED, Case, Point
from hiernorm.learn.evaluate import judge_description
from hiernorm.reproduce.measure import measure_case
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work, slug

MAJORS = (16, 24, 32, 64)
"""The paper's K and those past it."""


def plan(work: Work) -> list[Run]:
    """One run per scene and K."""
    return [
        Run(f"{scene}-{slug(point)}", 25, partial(_measure, work, scene, point))
        for scene in work.options.tests
        for point in ((major, RECOMMENDED[1]) for major in MAJORS)
    ]


def _measure(work: Work, name: str, point: Point) -> Result:
    size, variant = work.options.size, work.variant(point)
    found = variant.describe(work.warehouse.scene_features(name, variant.body))
    scene = work.warehouse.scene(name)
    quality = judge_description(scene, variant.name, found, size.rounds, work.options.seed)
    data = work.warehouse.build(name, variant, size.section_entries)
    case = Case(size.section_entries, point, peers=False, graph=False)
    measured = measure_case(work, case, data, size.queries)
    interval = {"low": quality.low, "high": quality.high}
    return {**measured, "fpr95": quality.fpr95, **interval, "energy": quality.energy}


PART = Part("higher", "Future work: higher K", plan)

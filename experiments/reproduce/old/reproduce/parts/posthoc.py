"""Section 3: HN put on the baseline as it is, against HN that was trained or turned."""

from __future__ import annotations

from functools import partial

from hiernorm.bench.cases import RECOMMENDED
from hiernorm.learn.evaluate import judge_description
from hiernorm.learn.measures import major_energy
from hiernorm.reproduce.measure import describe_database, measure_phase2
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work

HOWS = ("posthoc", "made")


def plan(work: Work) -> list[Run]:
    """One run per scene and way of making the variant."""
    return [
        Run(f"{scene}-{how}", 20, partial(_measure, work, scene, how))
        for scene in work.options.tests
        for how in HOWS
    ]


def _measure(work: Work, name: str, how: str) -> Result:
    posthoc = how == "posthoc"
    variant = work.workshop.posthoc(RECOMMENDED) if posthoc else work.variant(RECOMMENDED)
    size = work.options.size
    data = work.warehouse.build(name, variant, size.section_entries)
    found = variant.describe(work.warehouse.scene_features(name, variant.body))
    assert found.features is not None
    quality = judge_description(
        work.warehouse.scene(name), variant.name, found, size.rounds, work.options.seed
    )
    return {
        "database": describe_database(data),
        "phase2": measure_phase2(data, RECOMMENDED, size.more_queries),
        "energy": major_energy(found.features, RECOMMENDED[0]),
        "fpr95": quality.fpr95,
    }


PART = Part("posthoc", "Section 3: post hoc HN against fine-tuned", plan)

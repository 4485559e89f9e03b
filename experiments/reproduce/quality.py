"""Table 1 and Figures 1 to 3: FPR@95 and ROC curves of SIFT, the baseline and all HN variants."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from hiernorm.bench.cases import Point
from hiernorm.learn.describers import load_describer
from hiernorm.learn.evaluate import evaluate_scene, judge_description
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import POINTS, Part, Run, Work, slug

HAND_CRAFTED = "sift"


def plan(work: Work) -> list[Run]:
    """One run per scene and descriptor."""
    runs = []
    for scene in work.options.tests:
        runs.append(Run(f"{scene}-{HAND_CRAFTED}", 12, partial(_judge_sift, work, scene)))
        for point in (None, *POINTS):
            runs.append(Run(f"{scene}-{slug(point)}", 6, partial(_judge, work, scene, point)))
    return runs


def _judge_sift(work: Work, name: str) -> Result:
    scene = work.warehouse.scene(name)
    describer = load_describer(HAND_CRAFTED)
    return asdict(evaluate_scene(scene, describer, work.options.size.rounds, work.options.seed))


def _judge(work: Work, name: str, point: Point | None) -> Result:
    scene, variant = work.warehouse.scene(name), work.variant(point)
    found = variant.describe(work.warehouse.scene_features(name, variant.body))
    rounds, seed = work.options.size.rounds, work.options.seed
    return asdict(judge_description(scene, variant.name, found, rounds, seed))


PART = Part("quality", "Table 1, Figures 1-3: FPR@95 and ROC curves", plan)

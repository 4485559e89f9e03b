"""The data: scenes, variants and what the largest databases consist of."""

from __future__ import annotations

from functools import partial

import numpy as np

from hiernorm.bench.cases import Point
from hiernorm.reproduce.measure import describe_database
from hiernorm.reproduce.sources import find_photos
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import POINTS, Part, Run, Work, slug

PATCHES_PER_SECOND = 900
"""That one core describes: what the expected time is reckoned with."""


def plan(work: Work) -> list[Run]:
    """One run per scene and variant."""
    size = work.options.size
    return [
        Run(work.options.train, 20, partial(_describe_scene, work, work.options.train)),
        *(
            Run(f"variant-{slug(point)}", 2, partial(_make_variant, work, point))
            for point in POINTS
        ),
        *(
            Run(scene, size.entries / PATCHES_PER_SECOND / 2, partial(_gather, work, scene))
            for scene in work.options.tests
        ),
    ]


def _describe_scene(work: Work, name: str) -> Result:
    scene = work.warehouse.scene(name)
    return {
        "scene": name,
        "patches": len(scene),
        "points": len(scene.point_ids),
        "pairs": len(scene.pairs),
        "photos": len(find_photos(work.options.data, name)),
    }


def _make_variant(work: Work, point: Point) -> Result:
    """Train or turn it: what takes hours with the paper's recipe happens here."""
    variant = work.variant(point)
    log = work.workshop.read_log(variant.name)
    return {"recipe": work.options.recipe, "variant": variant.name, "log": log}


def _gather(work: Work, name: str) -> Result:
    split = work.warehouse.split(name)
    data = work.warehouse.build(name, work.workshop.plain, work.options.size.entries)
    return {
        **_describe_scene(work, name),
        "queries": len(split.queries),
        "images_held_out": sorted(split.images),
        "keypoint_queries": len(data.keypoints),
        "database": describe_database(data),
        "distinct": len(np.unique(data.entries, axis=0)),
    }


PART = Part("data", "The data: scenes, variants, databases of real patches", plan)

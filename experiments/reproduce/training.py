"""Future work, K = 8: training with the hardest negatives of larger batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from hiernorm.bench.cases import Point
from hiernorm.learn.evaluate import judge_description
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work, slug

POINT: Point = (8, 1 / 8)

LOSSES = ("triplet", "hardest")


def plan(work: Work) -> list[Run]:
    """One run per loss and number of pairs in a batch; a random negative at the paper's only."""
    small, *_ = work.options.size.batches
    kinds = [("triplet", small), *(("hardest", batch) for batch in work.options.size.batches)]
    return [
        Run(f"{loss}-{batch}", 150, partial(_measure, work, loss, batch)) for loss, batch in kinds
    ]


def _measure(work: Work, loss: str, batch: int) -> Result:
    """Train, then evaluate on both scenes.

    With the paper's recipe the whole network is trained. With the turned recipe, which trains
    nothing, the last layer alone is, after the turn: minutes instead of hours.
    """
    size = work.options.size
    changes: dict[str, Any] = {"loss": loss, "batch": batch}
    if work.options.recipe == "turned":
        changes |= {
            "rotate": "lda",
            "freeze_statistics": True,
            "epochs": 0,
            "head_epochs": size.head_epochs,
            "head_views": size.head_views,
            "augment": ("flips", "turns", "shifts"),
        }
    work.say(f"training K=8, {loss}, {batch} pairs")
    variant = work.workshop.train(f"{slug(POINT)}-{loss}-{batch}", POINT, **changes)
    scenes = {}
    for name in work.options.tests:
        work.say(f"evaluating K=8, {loss}, {batch} pairs on {name}")
        found = variant.describe(work.warehouse.scene_features(name, variant.body))
        scene = work.warehouse.scene(name)
        quality = judge_description(scene, variant.name, found, size.rounds, work.options.seed)
        scenes[name] = {"fpr95": quality.fpr95, "low": quality.low, "high": quality.high}
    return {"loss": loss, "batch": batch, "point": POINT, "scenes": scenes}


PART = Part("hardest", "Future work: K=8 with hardest negatives and larger batches", plan)

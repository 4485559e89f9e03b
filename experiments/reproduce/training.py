"""Future work on descriptors: higher K; and K = 8 with hardest negatives and larger batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.harness.comparison import Case
from experiments.harness.page import MISSING, Rows, Section, Text, number, percent
from experiments.harness.points import RECOMMENDED, Point, slug
from experiments.harness.records import Result
from experiments.reproduce.findings import Findings, speeds_of
from experiments.reproduce.work import Part, Run, Work, measure_case

MAJORS = (16, 24, 32, 64)
"""The paper's K and those past it."""

TRAINED: Point = (8, 1 / 8)


def _plan_higher(work: Work) -> list[Run]:
    """One run per scene and K."""
    return [
        Run(f"{scene}-{slug(point)}", 25, partial(_measure_higher, work, scene, point))
        for scene in work.options.tests
        for point in ((major, RECOMMENDED[1]) for major in MAJORS)
    ]


def _measure_higher(work: Work, name: str, point: Point) -> Result:
    size, variant = work.options.size, work.variant(point)
    quality = work.evaluate(name, variant)
    data = work.databases.build(name, variant, size.section_entries)
    case = Case(size.section_entries, point, peers=False, graph=False)
    measured = measure_case(work, case, data, size.queries)
    interval = {"low": quality.low, "high": quality.high}
    return {**measured, "fpr95": quality.fpr95, **interval, "energy": quality.energy}


def _plan_hardest(work: Work) -> list[Run]:
    """One run per loss and number of pairs in a batch; a random negative at the paper's only."""
    small, *_ = work.options.size.batches
    kinds = [("triplet", small), *(("hardest", batch) for batch in work.options.size.batches)]
    return [
        Run(f"{loss}-{batch}", 150, partial(_measure_hardest, work, loss, batch))
        for loss, batch in kinds
    ]


def _measure_hardest(work: Work, loss: str, batch: int) -> Result:
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
    variant = work.variants.train(f"{slug(TRAINED)}-{loss}-{batch}", TRAINED, **changes)
    scenes = {}
    for name in work.options.tests:
        work.say(f"evaluating K=8, {loss}, {batch} pairs on {name}")
        quality = work.evaluate(name, variant)
        scenes[name] = {"fpr95": quality.fpr95, "low": quality.low, "high": quality.high}
    return {"loss": loss, "batch": batch, "point": TRAINED, "scenes": scenes}


HIGHER = Part("higher", "Future work: higher K", _plan_higher)
HARDEST = Part(
    "hardest", "Future work: K=8 with hardest negatives and larger batches", _plan_hardest
)


def higher(findings: Findings) -> Section:
    """Higher K."""
    rows = []
    for name in findings.tests:
        for point in ((major, 1 / 8) for major in MAJORS):
            found = findings.get(f"higher/{name}-{slug(point)}")
            if found is None:
                rows.append([name, str(point[0]), *[MISSING] * 5])
                continue
            speeds = {family: s for (family, _), s in speeds_of(found).items()}
            rate = f"{found['fpr95']:.4f} ({found['low']:.4f} to {found['high']:.4f})"
            cells = [name, str(point[0]), rate, percent(found["energy"])]
            cells.append(percent(found["phase2"]["matched"]))
            cells += [
                number(speeds[family].mean if family in speeds else None)
                for family in ("paper", "cascade")
            ]
            rows.append(cells)
    head = ["scene", "K", "FPR@95 (95% interval)", "energy in the major", "Phase 2"]
    return Section(
        f"Future work: higher K, alpha = 1/8, N = {findings.size['section_entries']:,}",
        [Rows([*head, "speed-up, Algorithm 1", "cascade"], rows)],
    )


def hardest(findings: Findings) -> Section:
    """Hardest negatives."""
    trained = [r for r in findings.records if r.name.startswith("hardest/")]
    rows = []
    for name in findings.tests:
        quality = findings.quality((8, 1 / 8), findings.tests.index(name))
        if quality is not None:
            interval = f"{quality.fpr95:.4f} ({quality.low:.4f} to {quality.high:.4f})"
            rows.append([name, "as in Table 1", "", interval])
        for record in trained:
            result = record.result
            found = result["scenes"][name]
            interval = f"{found['fpr95']:.4f} ({found['low']:.4f} to {found['high']:.4f})"
            negatives = "hardest in batch" if result["loss"] == "hardest" else "random"
            rows.append([name, negatives, str(result["batch"]), interval])
    how = (
        f"The last layer alone was trained, after the turn: {findings.size['head_epochs']} passes "
        f"over {findings.size['head_views']} views of every patch."
        if findings.settings["recipe"] == "turned"
        else "The whole network was trained, by the paper's schedule."
    )
    return Section(
        "Future work: K = 8 with hardest negatives and larger batches, alpha = 1/8",
        [Text(how), Rows(["scene", "negatives", "pairs per batch", "FPR@95"], rows)],
    )

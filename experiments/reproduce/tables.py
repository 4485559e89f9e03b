"""The tables of the reproduction: the summary; quality and speed beside the paper's."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point, fraction
from experiments.reproduce.claims.claim import UNKNOWN
from experiments.reproduce.findings import Findings, paper_fpr95, paper_speed
from experiments.reproduce.summary import judge_claims, summary_card
from experiments.tables.registry import table

SCENES = (0, 1)


@table("reproduction-summary", "reproduce/results/REPORT.md")
def render_summary(report: Path) -> Rows:
    """What was reproduced, what was not, and why."""
    findings = Findings(report.parent)
    card = summary_card(findings, judge_claims(findings))
    terms = [f"{tile.figure} {tile.label}" for tile in card.tiles]
    terms += [term for term, _ in card.facts[len(terms) :]]
    rows = [[f"**{term}**", text] for term, (_, text) in zip(terms, card.facts, strict=True)]
    return Rows(["verdict", "of what"], rows)


@table("reproduction", "reproduce/results/REPORT.md")
def render_points(report: Path) -> Rows:
    """FPR@95 and speed-up of all points on both scenes, the paper's first."""
    findings = Findings(report.parent)
    rows = [_row(findings, point) for point in ALL_POINTS]
    rows.append(
        [
            "plain, lossless rotation",
            "",
            _pair([f"{paper_fpr95('plain', scene):.3f}" for scene in SCENES]),
            _qualities(findings, "plain"),
            "",
            "",
            _speeds(findings, None, "cascade"),
        ]
    )
    head = ["K", "alpha", "FPR@95, paper", "ours", "speed-up, paper"]
    return Rows([*head, "ours, Algorithm 1", "ours, cascade"], rows)


@table("reproduction-recipes", "reproduce/results/recipes/tuned/REPORT.md")
def render_recipes(report: Path) -> Rows:
    """FPR@95 and Phase 2 of all points, by recipe and baseline, on both scenes."""
    ways = {"turned": "turned", "tuned": "fine-tuned", "liberty": "fine-tuned from HardTFeat"}
    made = {word: Findings(report.parent.parent / name) for name, word in ways.items()}
    head = ["K", "alpha", "paper", "times its baseline"]
    for word in made:
        head += [word, "times", "Phase 2"]
    rows = []
    whats: list[str | Point] = ["plain", *ALL_POINTS]
    for what in whats:
        cells = ["plain", ""] if isinstance(what, str) else [str(what[0]), fraction(what[1])]
        theirs = [paper_fpr95(what, scene) for scene in SCENES]
        plain = [paper_fpr95("plain", scene) for scene in SCENES]
        cells.append(_pair([f"{rate:.3f}" for rate in theirs]))
        cells.append(_pair([f"{t / p:.1f}" for t, p in zip(theirs, plain, strict=True)]))
        for findings in made.values():
            cells += [_qualities(findings, what, 4), _multiples(findings, what)]
            cells.append(_shares(findings, what))
        rows.append(cells)
    return Rows(head, rows)


@table("reproduction-trained-claims", "reproduce/results/recipes/tuned/REPORT.md")
def render_trained_claims(report: Path) -> Rows:
    """Claims on quality: by variants that were turned, and by those that were fine-tuned."""
    turned, tuned = (
        {claim.name: claim for claim in judge_claims(Findings(report.parent.parent / name))}
        for name in ("turned", "tuned")
    )
    rows = [
        [name, turned[name].verdict, claim.verdict, claim.evidence]
        for name, claim in tuned.items()
        if claim.verdict != UNKNOWN
    ]
    return Rows(["claim", "turned", "fine-tuned", "evidence, fine-tuned"], rows)


def _shares(findings: Findings, what: str | Point) -> str:
    """What Phase 2 evaluates for patches without a match; nothing for the baseline."""
    found = [findings.left_without_match(what, scene) for scene in SCENES]
    return _pair([f"{share:.2%}" for share in found if share is not None])


def _multiples(findings: Findings, what: str | Point) -> str:
    """FPR@95 as a multiple of the baseline's."""
    texts = []
    for scene in SCENES:
        found, plain = findings.quality(what, scene), findings.quality("plain", scene)
        texts.append(
            "not run" if found is None or plain is None else _times(found.fpr95 / plain.fpr95)
        )
    return _pair(texts)


def _row(findings: Findings, point: Point) -> list[str]:
    major, alpha = point
    cells = [
        str(major),
        fraction(alpha),
        _pair([f"{paper_fpr95(point, scene):.3f}" for scene in SCENES]),
        _qualities(findings, point),
        _pair([f"{paper_speed(point, scene)[0]:.1f}" for scene in SCENES]),
        _speeds(findings, point, "paper"),
        _speeds(findings, point, "cascade"),
    ]
    if point == RECOMMENDED:
        return [f"**{cell}**" if place in (0, 1, 6) else cell for place, cell in enumerate(cells)]
    return cells


def _qualities(findings: Findings, what: str | Point, digits: int = 3) -> str:
    found = [findings.quality(what, scene) for scene in SCENES]
    return _pair(["not run" if q is None else f"{q.fpr95:.{digits}f}" for q in found])


def _speeds(findings: Findings, point: Point | None, family: str) -> str:
    found = [findings.speed(point, scene, family) for scene in SCENES]
    return _pair(["not run" if s is None else _times(s.mean) for s in found])


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _pair(texts: list[str]) -> str:
    return ", ".join(texts)

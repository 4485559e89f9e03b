"""The table of the reproduction: quality and speed of every point beside the paper's."""

from __future__ import annotations

from pathlib import Path

from experiments.harness.page import Rows
from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point, fraction
from experiments.reproduce.findings import Findings, paper_fpr95, paper_speed
from experiments.tables.registry import table

SCENES = (0, 1)


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


def _qualities(findings: Findings, what: str | Point) -> str:
    found = [findings.quality(what, scene) for scene in SCENES]
    return _pair(["not run" if quality is None else f"{quality.fpr95:.3f}" for quality in found])


def _speeds(findings: Findings, point: Point | None, family: str) -> str:
    found = [findings.speed(point, scene, family) for scene in SCENES]
    return _pair(["not run" if s is None else _times(s.mean) for s in found])


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _pair(texts: list[str]) -> str:
    return ", ".join(texts)

"""Tables of the shipped models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.harness.page import Rows
from experiments.harness.points import fraction
from experiments.tables.registry import table

SOURCE = "models/results/evaluation.json"

NAMES = {"sift-48": "SIFT, window 48", "rootsift-48": "RootSIFT, window 48"}

AIMS = {
    "hardnet": ("sift-48", 1 / 5, 1 / 10),
    "hn16": ("hardnet", 2.3, 1.1),
    "hn8": ("sift-48", 1.0, 1 / 2),
}
"""Of each model: whose FPR@95 it is compared with, the most that we ask, and the aim."""


@table("models", SOURCE)
def render_models(file: Path) -> Rows:
    """FPR@95 and its interval on every scene."""
    results = _read(file)
    scenes = list(dict.fromkeys(result["scene"] for result in results))
    head = ["model"]
    for scene in scenes:
        head += [scene, "95% interval"]
    rows = []
    for model in dict.fromkeys(result["model"] for result in results):
        of = [_find(results, model, scene) for scene in scenes]
        cells = [_label(of[0])]
        for result in of:
            cells += [f"{result['fpr95']:.4f}", f"{result['low']:.4f} to {result['high']:.4f}"]
        rows.append(cells)
    return Rows(head, rows)


@table("models-goals", SOURCE)
def render_goals(file: Path) -> Rows:
    """What we asked of each model, as a multiple of another's FPR@95; bold where it is reached."""
    results = _read(file)
    scenes = list(dict.fromkeys(result["scene"] for result in results))
    rows = []
    for model, (other, floor, aim) in AIMS.items():
        cells = [f"`{model}`", f"{NAMES.get(other, f'`{other}`')}", f"{floor:.2g}", f"{aim:.2g}"]
        for scene in scenes:
            times = _find(results, model, scene)["fpr95"] / _find(results, other, scene)["fpr95"]
            cells.append(f"**{times:.2f}**" if times <= floor else f"{times:.2f}")
        rows.append(cells)
    head = ["model", "times the FPR@95 of", "at most", "aim"]
    return Rows([*head, *scenes], rows)


def _read(file: Path) -> list[dict[str, Any]]:
    """What `hiernorm evaluate` wrote."""
    results: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["results"]
    return results


def _find(results: list[dict[str, Any]], model: str, scene: str) -> dict[str, Any]:
    return next(r for r in results if (r["model"], r["scene"]) == (model, scene))


def _label(result: dict[str, Any]) -> str:
    model = result["model"]
    if model in NAMES:
        return NAMES[model]
    if result["major"] is None:
        return f"`{model}`, plain"
    return f"`{model}`, K={result['major']}, alpha={fraction(result['alpha'])}"

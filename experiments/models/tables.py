"""Tables of the shipped models."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments.harness.page import Rows
from experiments.harness.points import fraction
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "models/results/models.json"

NAMES = {
    "sift-48": "SIFT, window 48",
    "rootsift-48": "RootSIFT, window 48",
    "hardtfeat": "HardTFeat, trained on Liberty by its authors",
    "tfeat": "TFeat, trained on Liberty by its authors",
    "vgg-48": "VGG (OpenCV)",
    "boostdesc-48": "BoostDesc (OpenCV)",
    "beblid-48": "BEBLID (OpenCV)",
    "teblid-48": "TEBLID (OpenCV)",
    "daisy-48": "DAISY (OpenCV)",
}

AIMS = (
    ("hardnet", "hardtfeat", 1.0, 0.6),
    ("hn16", "hardnet", 1.3, 1.1),
    ("hn16", "tfeat", 1.0, None),
    ("hn8", "sift-48", 0.6, 0.4),
)
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
    for model, other, floor, aim in AIMS:
        cells = [f"`{model}`", NAMES.get(other, f"`{other}`"), f"{floor:.2g}"]
        cells.append("" if aim is None else f"{aim:.2g}")
        for scene in scenes:
            times = _find(results, model, scene)["fpr95"] / _find(results, other, scene)["fpr95"]
            cells.append(f"**{times:.2f}**" if times <= floor else f"{times:.2f}")
        rows.append(cells)
    head = ["model", "times the FPR@95 of", "at most", "aim"]
    return Rows([*head, *scenes], rows)


@table("models-development", "models/results/development.json")
@table("two-layers-development", "models/results/two-layers/development.json")
def render_development(file: Path) -> Rows:
    """FPR@95 where no network was trained, and the share of entries that search evaluates."""
    results = _read(file)
    scenes = list(dict.fromkeys(result["scene"] for result in results))
    head = ["network"]
    for scene in scenes:
        head += [scene, "95% interval", "Phase 2: with a match, without"]
    rows = []
    for model in dict.fromkeys(result["model"] for result in results):
        of = [_find(results, model, scene) for scene in scenes]
        cells = [_label(of[0])]
        for result in of:
            cells += [f"{result['fpr95']:.4f}", f"{result['low']:.4f} to {result['high']:.4f}"]
            shares = result["phase2"]
            cells.append(
                f"{shares['with_match']:.2%}, {shares['without_match']:.2%}" if shares else ""
            )
        rows.append(cells)
    return Rows(head, rows)


def _render_card(model: str, file: Path) -> Rows:
    """FPR@95 of one model, beside SIFT and HardTFeat."""
    results = _read(file)
    rows = []
    for scene in dict.fromkeys(result["scene"] for result in results):
        found = _find(results, model, scene)
        others = [_find(results, other, scene)["fpr95"] for other in ("sift-48", "hardtfeat")]
        interval = f"{found['low']:.4f} to {found['high']:.4f}"
        rows.append([scene, f"{found['fpr95']:.4f}", interval, *(f"{o:.4f}" for o in others)])
    return Rows(["scene", "FPR@95", "95% interval", "SIFT, window 48", "HardTFeat"], rows)


for _name in ("hardnet", "hn16", "hn16-int8", "hn8"):
    table(f"card-{_name}", SOURCE)(partial(_render_card, _name))


@table("models-speed", SOURCE)
def render_speed(file: Path) -> Rows:
    """Patches a second of each model, and the size of its file."""
    speeds = read_record(file).result["speed"]
    rows = []
    for model in dict.fromkeys(speed["model"] for speed in speeds):
        one, two = (speed for speed in speeds if speed["model"] == model)
        rates = [f"{speed['patches_per_second']:,.0f}" for speed in (one, two)]
        rows.append([f"`{model}`", *rates, f"{one['bytes'] / 1e6:.1f} MB"])
    return Rows(["model", "patches a second, 1 thread", "2 threads", "file"], rows)


@table("models-layers", SOURCE)
def render_layers(file: Path) -> Rows:
    """Where the time of each model goes."""
    layers = read_record(file).result["layers"]
    names = list(dict.fromkeys(name for shares in layers.values() for name in shares))
    rows = [
        [f"`{Path(model).stem}`", *(f"{shares.get(name, 0):.0%}" for name in names)]
        for model, shares in layers.items()
    ]
    return Rows(["model", *names], rows)


@table("models-scenes", "models/results/scenes.json")
@table("two-layers-scenes", "models/results/two-layers/scenes.json")
def render_scenes(file: Path) -> Rows:
    """Points, patches and views of the training scenes."""
    scenes = read_record(file).result["scenes"]
    rows = [
        [
            scene["scene"],
            f"{scene['points']:,}",
            f"{scene['patches']:,}",
            f"{scene['views']:.1f}",
            f"{scene['most_views']}",
        ]
        for scene in scenes
    ]
    total = [f"{sum(scene[name] for scene in scenes):,}" for name in ("points", "patches")]
    head = ["scene", "points", "patches", "views of a point, mean", "most"]
    return Rows(head, [*rows, ["all", *total, "", ""]])


def _read(file: Path) -> list[dict[str, Any]]:
    """The results of the evaluation."""
    results: list[dict[str, Any]] = read_record(file).result["quality"]
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

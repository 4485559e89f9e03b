"""Tables of the shipped models."""

from __future__ import annotations

import math
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
    ("hn16-int8", "hn16", 1.05, None),
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
        cells = [f"`{model}`", NAMES.get(other, f"`{other}`"), f"{floor:.3g}"]
        cells.append("" if aim is None else f"{aim:.2g}")
        for scene in scenes:
            times = _find(results, model, scene)["fpr95"] / _find(results, other, scene)["fpr95"]
            cells.append(f"**{times:.2f}**" if times <= floor else f"{times:.2f}")
        rows.append(cells)
    head = ["model", "times the FPR@95 of", "at most", "aim"]
    return Rows([*head, *scenes], rows)


@table("models-development", "models/results/development.json")
@table("two-layers-development", "models/results/two-layers/development.json")
@table("means-development", "models/results/means/heads.json")
@table("longer-development", "models/results/longer/heads.json")
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


@table("means-places", "models/results/means/places/heads.json")
def render_left_out(file: Path) -> Rows:
    """Networks by one recipe, each measured on the place that it was trained without."""
    results = _read(file)
    rows = []
    for scene in dict.fromkeys(result["scene"] for result in results):
        plain, start, trained = (
            _find(results, model, scene) for model in ("two_places", "start", "major")
        )
        other = _find(results, "hardtfeat", scene)["fpr95"]
        cells = [scene.partition("-")[0], f"{other:.4f}"]
        cells += [f"{result['fpr95']:.4f}" for result in (plain, start, trained)]
        cells.append(f"{trained['low']:.4f} to {trained['high']:.4f}")
        cells.append(f"{trained['fpr95'] / plain['fpr95']:.2f}" if plain["fpr95"] else "")
        cells += [f"{result['phase2']['without_match']:.2%}" for result in (start, trained)]
        rows.append(cells)
    head = ["left out", "HardTFeat", "plain start", "turned", "trained", "95% interval"]
    return Rows([*head, "trained / plain", "share, turned", "share, trained"], rows)


@table("rate-hardnet", "models/results/rate/hardnet/heads.json")
@table("rate-hn16", "models/results/rate/hn16/heads.json")
@table("rate-long", "models/results/rate/long/heads.json")
def render_gain(file: Path) -> Rows:
    """A start and networks trained from it, on places that the training left out."""
    results = _read(file)
    models = list(dict.fromkeys(result["model"] for result in results))
    rows = []
    for scene in dict.fromkeys(result["scene"] for result in results):
        of = [_find(results, model, scene) for model in models]
        cells = [f"{r['fpr95']:.4f} ({r['low']:.4f} to {r['high']:.4f})" for r in of]
        shares = [f"{r['phase2']['without_match']:.1%}" for r in of if r["phase2"]]
        rows.append([scene.partition("-")[0], *cells, ", ".join(shares)])
    means = [f"{_geometric_mean(results, model):.4f}" for model in models]
    rows.append(["geometric mean", *means, ""])
    head = ["left out", *(f"`{model}`" for model in models)]
    return Rows([*head, "shares left to Phase 2, without a match"], rows)


@table("points-plain-some", "models/results/all-points/plain-some/heads.json")
@table("points-plain-all", "models/results/all-points/plain-all/heads.json")
@table("points-hn16-some", "models/results/all-points/hn16-some/heads.json")
@table("points-quarter", "models/results/all-points/quarter/heads.json")
@table("points-again", "models/results/all-points/again/heads.json")
@table("points-hn8-tight", "models/results/all-points/hn8-tight/heads.json")
@table("points-hn8", "models/results/all-points/hn8/heads.json")
@table("points-hn16-all", "models/results/all-points/hn16-all/heads.json")
@table("turned-unseen-1", "models/results/turned/group1/heads.json")
@table("turned-unseen-2", "models/results/turned/group2/heads.json")
def render_unseen(file: Path) -> Rows:
    """A plain network, then those that were trained from it, on places that none has seen."""
    results = _read(file)
    models = list(dict.fromkeys(result["model"] for result in results))
    scenes = list(dict.fromkeys(result["scene"] for result in results))
    plain = _geometric_mean(results, models[0])
    rows = []
    for model in models:
        of = [_find(results, model, scene) for scene in scenes]
        mean = _geometric_mean(results, model)
        shares = [r["phase2"]["without_match"] for r in of if r["phase2"]]
        share = f"{math.exp(sum(map(math.log, shares)) / len(shares)):.1%}" if shares else ""
        cells = [f"{r['fpr95']:.4f}" for r in of]
        rows.append([f"`{model}`", *cells, f"{mean:.4f}", f"{mean / plain:.2f}", share])
    places = [scene.partition("-")[0] for scene in scenes]
    head = ["network", *places, "geometric mean", "times the first"]
    return Rows([*head, "share without a match, geometric mean"], rows)


@table("means-held-out", "models/results/means/held_out.json")
@table("longer-held-out", "models/results/longer/held_out.json")
@table("longer-whole", "models/results/longer/whole.json")
@table("rate-held-out", "models/results/rate/clean/held_out.json")
@table("rate-held-out-noise", "models/results/rate/noise/held_out.json")
def render_held_out(file: Path) -> Rows:
    """Candidates: FPR@95 on points held out, and shares left to Phase 2."""
    found = read_record(file).result
    places = list(dict.fromkeys(result["scene"] for result in found["quality"]))
    shares = list(dict.fromkeys(result["scene"] for result in found["shares"]))
    rows = []
    for model in dict.fromkeys(result["model"] for result in found["quality"]):
        rates = [_find(found["quality"], model, place)["fpr95"] for place in places]
        cells = [f"`{model}`", f"{sum(rates) / len(rates):.5f}", *(f"{r:.4f}" for r in rates)]
        for place in shares:
            phase2 = _find(found["shares"], model, place)["phase2"]
            cells.append(f"{phase2['without_match']:.2%}" if phase2 else "")
        rows.append(cells)
    names = [place.partition("-")[0] for place in places]
    head = ["candidate", "mean", *names, *(f"share, {s.partition('-')[0]}" for s in shares)]
    return Rows(head, rows)


@table("means-ratio", "models/results/means/ratio.json")
@table("longer-ratio", "models/results/longer/ratio.json")
@table("rate-ratio", "models/results/rate/ratio.json")
@table("turned-ratio", "models/results/turned/ratio.json")
@table("points-ratio", "models/results/all-points/ratio.json")
@table("points-quarter-ratio", "models/results/all-points/quarter/ratio.json")
def render_ratio(file: Path) -> Rows:
    """The ratio of two models' FPR@95, with its interval."""
    found = read_record(file).result["ratios"]
    rows = [
        [
            row["scene"],
            f"{row['ratio']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}",
            f"{row['above_floor']:.0%}",
            f"{row['false_positives']:.0f}, {row['false_positives_other']:.0f}",
        ]
        for row in found
    ]
    pair = f"`{found[0]['model']}` / `{found[0]['other']}`"
    head = ["scene", pair, "95% interval", "samples above 1.3"]
    return Rows([*head, "false positives of each"], rows)


@table("points-eight-bits", "models/results/all-points/eight-bits/development.json")
def render_eight_bits(file: Path) -> Rows:
    """A network in floats, then in 8 bits: FPR@95 on places that it was trained on."""
    results = _read(file)
    scenes = list(dict.fromkeys(result["scene"] for result in results))
    means: dict[str, float] = {}
    rows = []
    for model in dict.fromkeys(result["model"] for result in results):
        rates = [_find(results, model, scene)["fpr95"] for scene in scenes]
        means[model] = sum(rates) / len(rates)
        times = means[model] / next(iter(means.values()))
        rows.append(
            [f"`{model}`", *(f"{r:.4f}" for r in rates), f"{means[model]:.5f}", f"{times:.2f}"]
        )
    places = [scene.partition("-")[0] for scene in scenes]
    return Rows(["network", *places, "mean", "times the first"], rows)


@table("points-search-time", "models/results/all-points/search_time.json")
@table("points-hn8-search-time", "models/results/all-points/hn8/search_time.json")
@table("points-hn8-mix4-time", "models/results/all-points/hn8/search_time_mix4.json")
@table("points-hn8-all5-time", "models/results/all-points/hn8/search_time_all5.json")
def render_search_time(file: Path) -> Rows:
    """Search times among the descriptors of two networks."""
    found = read_record(file).result
    rows = [
        [f"{r['n']:,}", str(r["k"]), f"{r['old']:.1f}", f"{r['new']:.1f}", f"{r['ratio']:.2f}"]
        for r in found["rows"]
    ]
    rows.append(["geometric mean", "", "", "", f"{found['mean']:.2f}"])
    return Rows(["N", "k", "former, us", "new, us", "ratio"], rows)


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
        name = NAMES.get(model, f"`{model}`")
        rows.append([name, *rates, f"{one['bytes'] / 1e6:.1f} MB"])
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
@table("longer-scenes", "models/results/longer/scenes.json")
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


def _geometric_mean(results: list[dict[str, Any]], model: str) -> float:
    """Of FPR@95 over all scenes."""
    rates = [result["fpr95"] for result in results if result["model"] == model]
    return math.exp(sum(math.log(rate) for rate in rates) / len(rates))


def _find(results: list[dict[str, Any]], model: str, scene: str) -> dict[str, Any]:
    return next(r for r in results if (r["model"], r["scene"]) == (model, scene))


def _label(result: dict[str, Any]) -> str:
    model = result["model"]
    if model in NAMES:
        return NAMES[model]
    if result["major"] is None:
        return f"`{model}`, plain"
    return f"`{model}`, K={result['major']}, alpha={fraction(result['alpha'])}"

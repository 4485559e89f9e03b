"""Pictures of a reproduction, drawn from the JSON of its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiernorm.bench.cases import RECOMMENDED
from hiernorm.learn.evaluate import Result
from hiernorm.learn.pictures import draw_rocs, make_figure
from hiernorm.reproduce.blocks import fraction
from hiernorm.reproduce.findings import Findings
from hiernorm.reproduce.paper import load_paper, paper_fpr95, paper_graph, paper_speed
from hiernorm.reproduce.work import POINTS, slug

KS = (16, 8)
COLOURS = {16: "#0b6e4f", 8: "#c8553d"}
GREY = "#9a9a9a"
DPI = 130


def draw_pictures(findings: Findings, folder: Path) -> set[str]:
    """Draw all pictures whose runs are there into ``folder``; return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, Callable[[Findings, Path], bool]] = {
        "roc-K16.png": lambda f, path: _draw_rocs(f, path, 16),
        "roc-K8.png": lambda f, path: _draw_rocs(f, path, 8),
        "fpr-alpha.png": _draw_alpha,
        "pareto.png": _draw_pareto,
        "sizes.png": _draw_sizes,
        "rotation.png": _draw_rotation,
        "soft.png": _draw_soft,
    }
    return {name for name, draw in drawings.items() if draw(findings, folder / name)}


def _draw_rocs(findings: Findings, path: Path, major: int) -> bool:
    """Figures 1 and 2."""
    names = ["sift", "plain", *(slug(point) for point in POINTS if point[0] == major)]
    found = [findings.get(f"quality/{scene}-{name}") for scene in findings.tests for name in names]
    results = [Result(**result) for result in found if result is not None]
    if not results:
        return False
    draw_rocs(results, path)
    return True


def _draw_alpha(findings: Findings, path: Path) -> bool:
    """Figure 3."""
    figure, panels = make_figure(2)
    for scene, axes in enumerate(panels):
        for k in KS:
            alphas = [alpha for major, alpha in POINTS if major == k]
            printed = [paper_fpr95((k, alpha), scene) for alpha in alphas]
            style = "-" if k == 16 else "--"
            axes.plot(alphas, printed, style, color=GREY, label=f"K={k}, paper")
            rows = findings.qualities(scene, k)
            if rows:
                rates = [quality.fpr95 for _, quality in rows]
                ends = [[max(0, q.fpr95 - q.low), max(0, q.high - q.fpr95)] for _, q in rows]
                axes.errorbar(
                    [alpha for alpha, _ in rows],
                    rates,
                    yerr=list(zip(*ends, strict=True)),
                    marker="o",
                    capsize=3,
                    color=COLOURS[k],
                    label=f"K={k}, ours",
                )
        for what, style in (("plain", "--"), ("sift", ":")):
            quality = findings.quality(what, scene)
            if quality is not None:
                axes.axhline(quality.fpr95, linestyle=style, color="black", label=f"{what}, ours")
        axes.set(yscale="log", xlabel="alpha", ylabel="FPR@95")
        axes.set_title(f"{load_paper()['scenes'][scene]} (paper) / {findings.tests[scene]} (ours)")
        _put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True


def _draw_pareto(findings: Findings, path: Path) -> bool:
    """Figure 4, with the plain descriptors by rotation."""
    figure, panels = make_figure(2)
    for scene, axes in enumerate(panels):
        for k in KS:
            points = [point for point in POINTS if point[0] == k]
            printed = [(paper_speed(p, scene)[0], paper_fpr95(p, scene)) for p in points]
            marker = "o" if k == 16 else "s"
            axes.plot(*zip(*printed, strict=True), marker=marker, color=GREY, label=f"K={k}, paper")
            for family, style in (("paper", ":"), ("cascade", "-")):
                rows = [
                    (speed.mean, quality.fpr95, point[1])
                    for point in points
                    if (speed := findings.speed(point, scene, family)) is not None
                    and (quality := findings.quality(point, scene)) is not None
                ]
                if not rows:
                    continue
                x, y, alphas = zip(*rows, strict=True)
                label = f"K={k}, {'Algorithm 1' if family == 'paper' else 'cascade'}"
                axes.plot(x, y, style, marker=marker, color=COLOURS[k], label=label)
                for place in zip(x, y, alphas, strict=True):
                    axes.annotate(fraction(place[2]), place[:2], fontsize=6, alpha=0.7)
        _draw_plain(findings, scene, axes)
        axes.set(xscale="log", yscale="log", xlabel="times the speed of brute force")
        axes.set_ylabel("FPR@95")
        axes.set_title(f"{load_paper()['scenes'][scene]} (paper) / {findings.tests[scene]} (ours)")
        _put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True


def _put_legend_below(axes: Any) -> None:
    """Where many lines leave no room inside."""
    axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)


def _draw_plain(findings: Findings, scene: int, axes: Any) -> None:
    axes.plot(1, paper_fpr95("plain", scene), "*", color=GREY, markersize=12)
    quality, rotated = findings.quality("plain", scene), findings.speed(None, scene, "cascade")
    if quality is not None:
        axes.plot(1, quality.fpr95, "*", color="#4a6fa5", markersize=12)
        if rotated is not None:
            axes.plot(
                rotated.mean, quality.fpr95, "*", color="#4a6fa5", markersize=14, label="plain, PCA"
            )


def _draw_sizes(findings: Findings, path: Path) -> bool:
    """Table 4 as a picture."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for n in findings.size["graph_entries"]:
        speeds = findings.graph_speeds(n, RECOMMENDED[1])
        for (family, name), speed in speeds.items():
            if family in ("cascade", "paper", "hnswlib", "panorama"):
                lines.setdefault(name, []).append((n, speed.mean))
    if not lines:
        return False
    figure, (axes,) = make_figure(1)
    for name, points in lines.items():
        own = name.startswith("hiernorm")
        style = "-" if own else "--" if name.startswith("hnswlib") else ":"
        axes.plot(*zip(*points, strict=True), style, marker="o", markersize=4, label=name)
    for ef, shade in ((10, "#bbbbbb"), (50, "#888888")):
        printed = [
            (n, times)
            for n in findings.size["graph_entries"]
            if (times := paper_graph(f"HNSW ef={ef}", n)) is not None
        ]
        if printed:
            label = f"paper: HNSW ef={ef}"
            axes.plot(*zip(*printed, strict=True), "-.", color=shade, label=label)
    axes.set(xscale="log", yscale="log", xlabel="entries")
    axes.set_ylabel("times the speed of brute force")
    _put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True


def _draw_rotation(findings: Findings, path: Path) -> bool:
    found = {name: findings.get(f"rotation/{name}") for name in findings.tests}
    known = {name: result for name, result in found.items() if result is not None}
    if not known:
        return False
    figure, (energy, left) = make_figure(2)
    for name, result in known.items():
        majors = [row["major"] for row in result["rows"]]
        energy.plot(majors, [row["energy"] for row in result["rows"]], marker="o", label=name)
        shares = [row["lossless_share_real_arithmetic"] for row in result["rows"]]
        left.plot(majors, shares, marker="o", label=f"{name}, lossless PCA")
        share = result["hn"]["matched"]
        left.plot(RECOMMENDED[0], share, "*", markersize=12, label=f"{name}, HN alpha=1/8")
    energy.plot([0, 128], [0, 1], ":", color=GREY, label="evenly spread")
    energy.set(xlabel="components", ylabel="share of energy", xlim=(0, 70), ylim=(0, 1))
    left.set(yscale="log", xlabel="K", ylabel="share of entries left")
    for axes in (energy, left):
        _put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True


def _draw_soft(findings: Findings, path: Path) -> bool:
    found = {name: findings.get(f"soft/{name}") for name in findings.tests}
    known = {name: result["rows"] for name, result in found.items() if result is not None}
    if not known:
        return False
    figure, (shares, speeds) = make_figure(2)
    for name, rows in known.items():
        betas = [row["beta"] for row in rows]
        shares.plot(betas, [row["recall"] for row in rows], "o-", label=f"recall, {name}")
        shares.plot(betas, [row["proved"] for row in rows], "s--", label=f"proved exact, {name}")
        speeds.plot(betas, [row["speedup"] for row in rows], "o-", label=name)
    shares.set(xlabel="beta", ylabel="share of queries")
    speeds.set(xlabel="beta", ylabel="times the speed of brute force")
    for axes in (shares, speeds):
        _put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True

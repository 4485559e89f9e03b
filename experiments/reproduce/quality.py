"""Table 1 and Figures 1 to 3: FPR@95 and ROC curves of SIFT, the baseline and all HN variants."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path

from experiments.harness.page import MISSING, Picture, Rows, Section, Text, number, ratio
from experiments.harness.points import ALL_POINTS, Point, fraction, slug
from experiments.harness.records import Result
from experiments.reproduce.findings import (
    Findings,
    Quality,
    load_paper,
    paper_fpr95,
)
from experiments.reproduce.pictures import COLOURS, DPI, GREY, KS, put_legend_below
from experiments.reproduce.work import Part, Run, Work
from hiernorm.learn.describers import load_describer
from hiernorm.learn.evaluate import Result as Evaluation
from hiernorm.learn.evaluate import evaluate_scene
from hiernorm.learn.pictures import draw_rocs, make_figure

HAND_CRAFTED = "sift"


def plan(work: Work) -> list[Run]:
    """One run per scene and descriptor."""
    runs = []
    for scene in work.options.tests:
        runs.append(Run(f"{scene}-{HAND_CRAFTED}", 12, partial(_judge_sift, work, scene)))
        for point in (None, *ALL_POINTS):
            runs.append(Run(f"{scene}-{slug(point)}", 6, partial(_judge, work, scene, point)))
    return runs


def _judge_sift(work: Work, name: str) -> Result:
    scene = work.databases.scene(name)
    describer = load_describer(HAND_CRAFTED)
    return asdict(evaluate_scene(scene, describer, work.options.size.rounds, work.options.seed))


def _judge(work: Work, name: str, point: Point | None) -> Result:
    return asdict(work.evaluate(name, work.variant(point)))


PART = Part("quality", "Table 1, Figures 1-3: FPR@95 and ROC curves", plan)


def table_1(findings: Findings) -> Section:
    """FPR@95 and the pictures that show it."""
    whats: list[tuple[str, str | Point]] = [("SIFT", "sift"), ("HardNet, plain", "plain")]
    whats += [(f"HN K={k}, alpha={fraction(alpha)}", (k, alpha)) for k, alpha in ALL_POINTS]
    theirs = load_paper()["scenes"]
    head = ["descriptor"]
    for scene, ours in enumerate(findings.tests):
        head += [f"{theirs[scene]}, paper", f"{ours}, ours (95% interval)", "ratio"]
    rows = []
    for label, what in whats:
        row = [label]
        for scene in range(2):
            paper, quality = paper_fpr95(what, scene), findings.quality(what, scene)
            rate = None if quality is None else quality.fpr95
            row += [number(paper), _interval(quality), ratio(rate, paper)]
        rows.append(row)
    return Section(
        "Table 1: FPR@95",
        [
            Text("Lower is better. Intervals are from a bootstrap over points, not over pairs."),
            Rows(head, rows),
            Text(_monotony(findings)),
            Picture("roc-K16.png", "Figure 1: ROC curves, K = 16."),
            Picture("roc-K8.png", "Figure 2: ROC curves, K = 8."),
            Picture("fpr-alpha.png", "Figure 3: FPR@95 against alpha; the paper's in grey."),
        ],
    )


def _interval(quality: Quality | None) -> str:
    if quality is None:
        return MISSING
    return f"{quality.fpr95:.4f} ({quality.low:.4f} to {quality.high:.4f})"


def _monotony(findings: Findings) -> str:
    """Say where quality does not rise with alpha."""
    faults = []
    for scene, name in enumerate(findings.tests):
        for k in KS:
            rows = findings.qualities(scene, k)
            faults += [
                f"K={k} on {name} from alpha={fraction(a)} ({qa.fpr95:.4f}) to alpha={fraction(b)} "
                f"({qb.fpr95:.4f})"
                for (a, qa), (b, qb) in pairwise(rows)
                if qb.fpr95 > qa.fpr95
            ]
    if not faults:
        return "Within each K and scene FPR@95 falls with every step of alpha, as in the paper."
    reason = (
        "The directions were chosen for the major alone, whatever alpha, so nothing made the "
        "minor of a larger alpha better; differences within the intervals above are noise."
        if findings.settings["recipe"] == "turned"
        else "Differences within the intervals above are noise."
    )
    return f"FPR@95 does not fall with alpha everywhere: it rises at {'; '.join(faults)}. {reason}"


def draw_curves(findings: Findings, path: Path, major: int) -> bool:
    """Figures 1 and 2."""
    names = ["sift", "plain", *(slug(point) for point in ALL_POINTS if point[0] == major)]
    found = [findings.get(f"quality/{scene}-{name}") for scene in findings.tests for name in names]
    results = [Evaluation(**result) for result in found if result is not None]
    if not results:
        return False
    draw_rocs(results, path)
    return True


def draw_alpha(findings: Findings, path: Path) -> bool:
    """Figure 3."""
    figure, panels = make_figure(2)
    for scene, axes in enumerate(panels):
        for k in KS:
            alphas = [alpha for major, alpha in ALL_POINTS if major == k]
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
        put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True

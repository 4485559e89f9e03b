"""Tables 2 and 3 and Figure 4: speed-up and Phase-2 share of all HN variants on both scenes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments.harness.comparison import Case
from experiments.harness.page import (
    MISSING,
    Block,
    Picture,
    Rows,
    Section,
    Text,
    number,
    percent,
    ratio,
)
from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point, fraction, slug
from experiments.harness.records import Result
from experiments.reproduce.findings import (
    Findings,
    Speed,
    load_paper,
    paper_fpr95,
    paper_speed,
)
from experiments.reproduce.pictures import COLOURS, DPI, GREY, KS, put_legend_below
from experiments.reproduce.work import Part, Run, Work, measure_case
from hiernorm.learn.pictures import make_figure


def plan(work: Work) -> list[Run]:
    """One run per scene and variant; the plain baseline is searched by its lossless rotation."""
    return [
        Run(f"{scene}-{slug(point)}", 45, partial(_measure, work, scene, point))
        for scene in work.options.tests
        for point in (*ALL_POINTS, None)
    ]


def _measure(work: Work, scene: str, point: Point | None) -> Result:
    size = work.options.size
    data = work.databases.build(scene, work.variant(point), size.entries)
    case = Case(size.entries, point, peers=False, graph=False)
    return measure_case(work, case, data, size.queries)


PART = Part("speed", "Tables 2 and 3, Figure 4: speed-up and Phase-2 share", plan)


def table_2(findings: Findings) -> Section:
    """Quality and speed at alpha = 1/8."""
    rows = []
    for scene, name in enumerate(findings.tests):
        theirs = load_paper()["scenes"][scene]
        for k in KS:
            point = (k, RECOMMENDED[1])
            paper_rate, (paper_times, _) = paper_fpr95(point, scene), paper_speed(point, scene)
            quality = findings.quality(point, scene)
            rate = None if quality is None else quality.fpr95
            row = [f"{theirs} / {name}", f"HN K={k}, alpha=1/8", number(paper_rate), number(rate)]
            row += [ratio(rate, paper_rate), number(paper_times)]
            for family in ("paper", "cascade"):
                speed = findings.speed(point, scene, family)
                times = None if speed is None else speed.mean
                row += [number(times), ratio(times, paper_times)]
            rows.append(row)
    head = ["scene", "method", "FPR@95, paper", "ours", "ratio", "speed-up, paper"]
    head += ["ours, Algorithm 1", "ratio", "ours, cascade", "ratio"]
    title = f"Table 2: quality and speed at alpha = 1/8, N = {findings.size['entries']:,}"
    return Section(title, [Rows(head, rows)])


def table_3(findings: Findings) -> Section:
    """Speed-up and Phase-2 share of all ten points."""
    blocks: list[Block] = [
        Text(
            "Speed-up over FAISS IndexFlatIP, a well-vectorised brute force, in the same process: "
            f"{findings.size['queries']} single queries, one thread, k = 1; times averaged over "
            f"{findings.size['runs']} interleaved runs, the range over the runs in brackets. A "
            "slow method searches fewer of the queries per run, and other ones in the next: brute "
            f"force {findings.queries_per_run('flat')}, Algorithm 1 "
            f"{findings.queries_per_run('paper')}, the cascade "
            f"{findings.queries_per_run('cascade')}. "
            "Algorithm 1 is the engine `paper`, the cascade the package's own; both return the "
            "answer of exhaustive search bit for bit, or the run would have stopped. Phase 2: mean "
            "share of entries that Algorithm 1 evaluates in full, for queries whose point the "
            "database shows in another view, and for any keypoints of photos that it has not."
        )
    ]
    head = ["K", "alpha", "speed-up, paper", "Algorithm 1", "ratio", "cascade", "ratio"]
    head += ["Phase 2, paper", "ours", "ratio", "ours, any keypoint"]
    for scene, name in enumerate(findings.tests):
        rows = []
        for point in ALL_POINTS:
            times, share = paper_speed(point, scene)
            row = [str(point[0]), fraction(point[1]), number(times)]
            for family in ("paper", "cascade"):
                speed = findings.speed(point, scene, family)
                row += [spread(speed), ratio(None if speed is None else speed.mean, times)]
            ours = findings.phase2(point, scene)
            row += [percent(share), percent(ours), ratio(ours, share)]
            keypoints = findings.phase2(point, scene, "keypoints")
            row.append(
                "no photos" if ours is not None and keypoints is None else percent(keypoints)
            )
            rows.append(row)
        plain = findings.speed(None, scene, "cascade")
        rows.append(["plain", "", "", "", "", spread(plain), "", "", "", "", ""])
        blocks += [Text(f"**{load_paper()['scenes'][scene]} / {name}**"), Rows(head, rows)]
    caption = (
        "Figure 4: quality against speed. Grey: the paper's. Stars: plain descriptors, by brute "
        "force (1x) and by the lossless rotation, which costs no quality."
    )
    blocks.append(Picture("pareto.png", caption))
    return Section(f"Table 3: speed at N = {findings.size['entries']:,}", blocks)


def spread(speed: Speed | None) -> str:
    """A speed-up and its range over the runs."""
    if speed is None:
        return MISSING
    return f"{number(speed.mean)} ({number(speed.low)} to {number(speed.high)})"


def draw_pareto(findings: Findings, path: Path) -> bool:
    """Figure 4, with the plain descriptors by rotation."""
    figure, panels = make_figure(2)
    for scene, axes in enumerate(panels):
        for k in KS:
            points = [point for point in ALL_POINTS if point[0] == k]
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
        put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True


def _draw_plain(findings: Findings, scene: int, axes: Any) -> None:
    axes.plot(1, paper_fpr95("plain", scene), "*", color=GREY, markersize=12)
    quality, rotated = findings.quality("plain", scene), findings.speed(None, scene, "cascade")
    if quality is not None:
        axes.plot(1, quality.fpr95, "*", color="#4a6fa5", markersize=12)
        if rotated is not None:
            axes.plot(
                rotated.mean, quality.fpr95, "*", color="#4a6fa5", markersize=14, label="plain, PCA"
            )

"""Future work on search: soft mode, beta below alpha; and cells, which skip most majors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import hiernorm
from experiments.harness.conditions import SINGLE
from experiments.harness.methods import Hiernorm
from experiments.harness.page import MISSING, Picture, Rows, Section, Text, number, percent
from experiments.harness.points import FASTEST, RECOMMENDED, Point, point_name, slug
from experiments.harness.records import Result
from experiments.harness.timing import recall
from experiments.reproduce.findings import Findings
from experiments.reproduce.pictures import DPI, put_legend_below
from experiments.reproduce.work import Part, Run, Work, time_methods
from hiernorm.learn.pictures import make_figure

STEPS = 8
"""Beta goes from 0 to alpha in so many steps."""

CELL_POINTS = (RECOMMENDED, FASTEST)


def _plan_soft(work: Work) -> list[Run]:
    """One run per scene."""
    return [Run(scene, 45, partial(_measure_soft, work, scene)) for scene in work.options.tests]


def _measure_soft(work: Work, name: str) -> Result:
    major, alpha = RECOMMENDED
    variant, size = work.variant(RECOMMENDED), work.options.size
    data = work.databases.build(name, variant, size.section_entries)
    index = hiernorm.Index(data.entries.shape[1], major=major, alpha=alpha)
    index.add(data.entries)
    engines = {
        beta: Hiernorm(f"beta={beta:g}", beta=beta).over(index)
        for beta in (alpha * i / STEPS for i in range(STEPS + 1))
    }
    times = time_methods(work, list(engines.values()), data)
    true = index.search(data.queries, 1).ids
    rows = []
    for beta, engine in engines.items():
        hits = engine.hits(data.queries, SINGLE)
        certificate = hits.certificate
        rows.append(
            {
                "beta": beta,
                "recall": recall(hits.ids, true, 1),
                "proved": float(certificate.exact.mean()),
                "worst_gap": float(certificate.gap.max()),
                "phase2": float(certificate.phase2_share.mean()),
                **times[engine.name],
            }
        )
    return {"entries": len(data.entries), "queries": len(data.queries), "rows": rows}


def _plan_cells(work: Work) -> list[Run]:
    """One run per size and point, on the first test scene."""
    size = work.options.size
    return [
        Run(f"n{n}-{slug(point)}", 10 + n / 20_000, partial(_measure_cells, work, n, point))
        for n in (size.section_entries, size.entries)
        for point in CELL_POINTS
    ]


def _measure_cells(work: Work, n: int, point: Point) -> Result:
    major, alpha = point
    data = work.databases.build(work.options.tests[0], work.variant(point), n)
    engines = [
        Hiernorm(name, major=major, alpha=alpha, cells=cells)
        for name, cells in (("with cells", True), ("without cells", False))
    ]
    for engine in engines:
        engine.build(data.entries, work.options.seed)
    times = time_methods(work, engines, data)
    work_of = {
        engine.name: engine.hits(data.queries, SINGLE).certificate.work for engine in engines
    }
    return {
        "entries": n,
        "point": point,
        **{
            name: {
                **times[name],
                "cells_opened": float(counts["cells"].mean()),
                "scanned": float(counts["scanned"].mean()),
                "scanned_share": float(counts["scanned"].mean()) / n,
            }
            for name, counts in work_of.items()
        },
    }


SOFT = Part("soft", "Future work: soft mode, beta below alpha", _plan_soft)
CELLS = Part("cells", "Future work: sub-linear Phase 1 by cells", _plan_cells)


def soft(findings: Findings) -> Section:
    """Soft mode."""
    rows = []
    for name in findings.tests:
        found = findings.get(f"soft/{name}")
        for row in [] if found is None else found["rows"]:
            cells = [name, number(row["beta"]), f"{row['recall']:.4f}", percent(row["proved"])]
            cells += [number(row["worst_gap"]), percent(row["phase2"]), number(row["speedup"])]
            rows.append(cells)
    head = ["scene", "beta", "recall@1", "proved exact", "worst gap", "left by the major"]
    text = (
        f"K = 16, alpha = 1/8, N = {findings.size['section_entries']:,}. beta = alpha is exact. "
        "Each answer says whether it was proved exact all the same; speed is over FAISS flat."
    )
    return Section(
        "Future work: soft mode",
        [
            Text(text),
            Rows([*head, "speed-up"], rows or [[MISSING] * 7]),
            Picture("soft.png", "Recall, share proved exact and speed against beta."),
        ],
    )


def cells(findings: Findings) -> Section:
    """Cells."""
    rows = []
    for n in (findings.size["section_entries"], findings.size["entries"]):
        for point in CELL_POINTS:
            found = findings.get(f"cells/n{n}-{slug(point)}")
            label = [f"{n:,}", point_name(point)]
            if found is None:
                rows.append([*label, *[MISSING] * 5])
                continue
            ours, without = found["with cells"], found["without cells"]
            cells = [number(ours["cells_opened"]), percent(ours["scanned_share"])]
            cells += [number(ours["speedup"]), number(without["speedup"])]
            rows.append([*label, *cells, number(ours["speedup"] / without["speedup"])])
    head = ["N", "point", "cells opened", "majors read", "speed-up with cells", "without"]
    return Section(
        "Future work: sub-linear Phase 1",
        [
            Text(f"On {findings.tests[0]}; blocks of 16 entries under certified cones."),
            Rows([*head, "cells bring"], rows),
        ],
    )


def draw_soft(findings: Findings, path: Path) -> bool:
    """Shares and speed against beta."""
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
        put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True

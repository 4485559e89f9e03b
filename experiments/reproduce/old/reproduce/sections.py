"""Sections 3, 6 and 7 of the paper beside what was measured."""

from __future__ import annotations

from statistics import mean
from typing import Any

from hiernorm.bench.cases import Point
from hiernorm.reproduce.blocks import (
    MISSING,
    Picture,
    Rows,
    Section,
    Text,
    fraction,
    number,
    percent,
    ratio,
)
from hiernorm.reproduce.findings import Findings
from hiernorm.reproduce.paper import load_paper, paper_speed
from hiernorm.reproduce.work import POINTS, slug

DIM = 128
LINE = 64
"""Bytes that a random read of a minor brings at least: a cache line."""


def section_3(findings: Findings) -> Section:
    """Post hoc HN against HN that was trained or turned."""
    paper = load_paper()["posthoc_vs_finetuned"]
    labels = {"posthoc": "post hoc", "made": _recipe(findings)}
    theirs = {"posthoc": paper["posthoc_phase2_pct"], "made": paper["finetuned_phase2_pct"]}
    rows = []
    for scene, name in enumerate(findings.tests):
        for how, label in labels.items():
            found = findings.get(f"posthoc/{name}-{how}")
            share = None if found is None else found["phase2"]["matched"]
            printed = theirs[how] / 100 if scene == 0 else None
            row = [name, label, "" if printed is None else percent(printed), percent(share)]
            row.append(ratio(share, printed))
            if found is None:
                row += [MISSING] * 3
            else:
                keypoints = found["phase2"]["keypoints"]
                row.append("no photos" if keypoints is None else percent(keypoints))
                row += [percent(found["energy"]), number(found["fpr95"])]
            rows.append(row)
    head = ["scene", "HN, K=16, alpha=1/8", "Phase 2, paper", "ours", "ratio", "ours, any keypoint"]
    head += ["energy in the major", "FPR@95"]
    title = f"Section 3: post hoc HN, N = {findings.size['section_entries']:,}"
    text = "The paper's figures are for trevi."
    return Section(title, [Rows(head, rows), Text(text)])


def _recipe(findings: Findings) -> str:
    return "turned, not trained" if findings.settings["recipe"] == "turned" else "fine-tuned"


def section_6(findings: Findings) -> Section:
    """Layout, scan order, and the model of FLOPs and bytes."""
    rows = []
    for point in ((16, 1 / 8), (8, 1 / 8)):
        found = findings.get(f"layout/{slug(point)}")
        if found is None:
            rows.append([str(point[0]), *[MISSING] * 7])
            continue
        times = {name: mean(values) for name, values in found["seconds"].items()}
        rows.append(
            [
                str(point[0]),
                *(f"{1e3 * times[name]:.2f}" for name in times),
                number(found["evaluated"]["index"]),
                number(found["evaluated"]["sorted"]),
            ]
        )
    head = ["K", "brute force, ms", "majors AoS", "majors SoA", "skip test, index order"]
    head += ["sort of the scores", "evaluated, index order", "evaluated, sorted"]
    return Section(
        "Section 6: layout, scan order and the FLOP model",
        [
            Text(
                f"N = {findings.size['entries']:,}, alpha = 1/8, milliseconds per query: one BLAS "
                "product with one thread for each scan, so that only the layout differs. The "
                "skip test reads the stored scores once; a sorted scan must sort them first."
            ),
            Rows(head, rows),
            Text(
                "The model: FLOPs of brute force over those of both phases, D / (K + share x "
                "(D - K)); and bytes alike, a Phase-2 entry costing whole cache lines. Measured "
                "is Algorithm 1 over FAISS flat (Table 3)."
            ),
            _model(findings),
        ],
    )


def _model(findings: Findings) -> Rows:
    rows = []
    for scene, name in enumerate(findings.tests):
        for point in POINTS:
            share, speed = findings.phase2(point, scene), findings.speed(point, scene, "paper")
            row = [name, str(point[0]), fraction(point[1]), number(paper_speed(point, scene)[0])]
            if share is None or speed is None:
                rows.append([*row, *[MISSING] * 4])
                continue
            flops = flop_model(point, share)
            row += [number(flops), number(byte_model(point, share)), number(speed.mean)]
            rows.append([*row, number(speed.mean / flops)])
    head = ["scene", "K", "alpha", "paper measured", "FLOP model", "byte model", "ours measured"]
    return Rows([*head, "measured over FLOP model"], rows)


def flop_model(point: Point, share: float) -> float:
    """The speed-up that counting multiplications predicts.

    Examples
    --------
    >>> round(flop_model((16, 1 / 32), 0.004), 1)
    7.8
    """
    major, _ = point
    return DIM / (major + share * (DIM - major))


def byte_model(point: Point, share: float) -> float:
    """The speed-up that counting bytes predicts: float32, minors in whole cache lines.

    Examples
    --------
    >>> byte_model((16, 0.0), 0.0)
    8.0
    """
    major, _ = point
    minor = -(-4 * (DIM - major) // LINE) * LINE
    return 4 * DIM / (4 * major + share * minor)


def section_7(findings: Findings) -> Section:
    """Determinism, and PCA."""
    return Section(
        "Section 7: determinism, and the relation to PCA",
        [*_determinism(findings), *_rotation(findings)],
    )


def _determinism(findings: Findings) -> list[Text | Rows]:
    rows: list[list[str]] = []
    ours = findings.get("determinism/ours")
    if ours is not None:
        conditions = ours["conditions"]
        isas = dict.fromkeys(c["isa"] for c in conditions)
        threads = dict.fromkeys(str(c["threads"]) for c in conditions)
        orders = len({c["order"] for c in conditions})
        what = f"{len(conditions)} searches: {orders} orders of insertion, {', '.join(isas)}, "
        what += f"{', '.join(threads)} threads, single and batched; k = 10, ids and score bits"
        changed = sum(c["changed"] for c in conditions)
        rows.append(["hiernorm", what, f"{changed} of {ours['queries']:,}", "0"])
    graphs = findings.get("determinism/hnswlib")
    for build in [] if graphs is None else summarise_builds(graphs):
        queries = f"{graphs['queries']:,}" if graphs else ""
        changed = f"{build['changed']} of {queries}"
        label = f"hnswlib, ef={build['ef']}"
        rows.append([label, build["what"], changed, str(build["wrong"])])
    text = (
        f"{findings.size['rebuild_entries']:,} entries of {findings.tests[0]}, K = 16, alpha = 1/8."
        " Changed: queries whose answer differs from that of the first build (for hnswlib the "
        "first answer only); wrong: first answers that are not the nearest neighbour; of several "
        "builds the worst."
    )
    head = ["index", "built and searched", "changed", "wrong"]
    return [Text(text), Rows(head, rows or [[MISSING] * 4])]


def summarise_builds(graphs: dict[str, Any]) -> list[dict[str, Any]]:
    """The worst build of each kind and ef: again, with more threads, in another order."""
    builds = graphs["builds"]
    kinds = {
        "again, all alike": [b for b in builds if b["order"] == 0 and b["threads"] == 1],
        "with 2 or 4 threads": [b for b in builds if b["threads"] > 1],
        "in another order": [b for b in builds if b["order"] > 0],
    }
    return [
        {
            "what": what,
            "ef": ef,
            "changed": max(b["changed"] for b in rows if b["ef"] == ef),
            "wrong": max(b["wrong"] for b in rows if b["ef"] == ef),
        }
        for what, rows in kinds.items()
        for ef in dict.fromkeys(b["ef"] for b in rows)
    ]


def _rotation(findings: Findings) -> list[Text | Rows | Picture]:
    rows = []
    for name in findings.tests:
        found = findings.get(f"rotation/{name}")
        for row in [] if found is None else found["rows"]:
            cells = [name, str(row["major"]), percent(row["uniform"]), percent(row["energy"])]
            cells += [number(row["truncated_fpr95"])]
            cells += [
                percent(row["lossless_share_real_arithmetic"]),
                percent(row["lossless_share"]),
            ]
            rows.append(cells)
    head = ["scene", "K", "energy if uniform", "energy, ours", "FPR@95 of K components alone"]
    head += ["left by K, lossless", "left by K, int8 codes"]
    text = (
        "The paper says that PCA of plain descriptors yields nothing, their energy being spread "
        "evenly. Energy: share of K components fitted on the training scene. Left: mean share of "
        f"{findings.size['section_entries']:,} entries that the first K dimensions of a lossless "
        "rotation cannot rule out, in real arithmetic, and with the codes that the index scans."
    )
    blocks: list[Text | Rows | Picture] = [Text(text), Rows(head, rows or [[MISSING] * 7])]
    return [*blocks, Picture("rotation.png", "Energy and what is left, against K.")]

"""Section 3, HN post hoc; Section 7, PCA: the energy of the major, and what it can rule out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

import hiernorm
from experiments.harness.page import MISSING, Picture, Rows, Section, Text, number, percent, ratio
from experiments.harness.patches import scene_source
from experiments.harness.points import RECOMMENDED
from experiments.harness.records import Result
from experiments.harness.vectors import bound_share
from experiments.reproduce.findings import Findings, load_paper
from experiments.reproduce.pictures import DPI, GREY, put_legend_below
from experiments.reproduce.work import Part, Run, Work, describe_database, measure_phase2
from hiernorm.learn.describers import PatchDescriptors
from hiernorm.learn.evaluate import evaluate_descriptors
from hiernorm.learn.pictures import make_figure
from hiernorm.rotation import fit_rotation, unit_rows

HOWS = ("posthoc", "made")
MAJORS = (8, 16, 24, 32, 64)


def _plan_posthoc(work: Work) -> list[Run]:
    """One run per scene and way of making the variant."""
    return [
        Run(f"{scene}-{how}", 20, partial(_measure_posthoc, work, scene, how))
        for scene in work.options.tests
        for how in HOWS
    ]


def _measure_posthoc(work: Work, name: str, how: str) -> Result:
    posthoc = how == "posthoc"
    variant = work.variants.posthoc(RECOMMENDED) if posthoc else work.variant(RECOMMENDED)
    size = work.options.size
    data = work.databases.build(name, variant, size.section_entries)
    quality = work.evaluate(name, variant)
    return {
        "database": describe_database(data),
        "phase2": measure_phase2(data, RECOMMENDED, size.more_queries),
        "energy": quality.energy,
        "fpr95": quality.fpr95,
    }


def _plan_rotation(work: Work) -> list[Run]:
    """One run per scene."""
    return [Run(scene, 60, partial(_measure_rotation, work, scene)) for scene in work.options.tests]


def _measure_rotation(work: Work, name: str) -> Result:
    size, plain = work.options.size, work.variants.plain
    data = work.databases.build(name, plain, size.section_entries)
    queries = data.queries[: size.queries]
    # As the paper would: fitted on the training scene, applied to another.
    train = plain.backbone.features(scene_source(work.databases.scene(work.options.train)))
    trained = fit_rotation(plain.describe(train).descriptors)
    scene = work.databases.scene(name)
    views = trained.apply(
        plain.describe(work.databases.scene_features(name, plain.backbone)).descriptors
    )
    energy = np.square(views).mean(axis=0)
    rows = []
    for major in MAJORS:
        cut = PatchDescriptors(unit_rows(views[:, :major]).astype(np.float32))
        quality = evaluate_descriptors(scene, f"PCA-{major}", cut, size.rounds, work.options.seed)
        index = hiernorm.Index(data.entries.shape[1], major=major, cells=False)
        index.add(data.entries)
        certificate = index.search(queries, 1, threads=1, batch_size=1).certificate
        rows.append(
            {
                "major": major,
                "energy": float(energy[:major].sum() / energy.sum()),
                "uniform": major / len(energy),
                "truncated_fpr95": quality.fpr95,
                "lossless_share": float(certificate.phase2_share.mean()),
                "lossless_share_real_arithmetic": bound_share(data.entries, queries, major),
            }
        )
    made = work.variant(RECOMMENDED)
    hn = work.databases.build(name, made, size.section_entries)
    return {
        "rows": rows,
        "hn": measure_phase2(hn, RECOMMENDED, size.queries),
        "point": RECOMMENDED,
    }


POSTHOC = Part("posthoc", "Section 3: post hoc HN against fine-tuned", _plan_posthoc)
ROTATION = Part("rotation", "Section 7: PCA of the plain descriptors", _plan_rotation)


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


def rotation_blocks(findings: Findings) -> list[Text | Rows | Picture]:
    """PCA of the plain descriptors."""
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


def draw_rotation(findings: Findings, path: Path) -> bool:
    """Energy, and what is left."""
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
        put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True

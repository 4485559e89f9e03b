"""The paper's future work: what became of it."""

from __future__ import annotations

from hiernorm.bench.cases import point_name
from hiernorm.reproduce.blocks import MISSING, Picture, Rows, Section, Text, number, percent
from hiernorm.reproduce.findings import Findings, speeds_of
from hiernorm.reproduce.parts.cells import POINTS as CELL_POINTS
from hiernorm.reproduce.parts.higher import MAJORS
from hiernorm.reproduce.work import slug


def future_work(findings: Findings) -> list[Section]:
    """One section per direction that the paper names."""
    return [
        _soft(findings),
        _fixed_point(findings),
        _higher(findings),
        _hardest(findings),
        _cells(findings),
    ]


def _soft(findings: Findings) -> Section:
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


def _fixed_point(findings: Findings) -> Section:
    rows = []
    for name in findings.tests:
        found = findings.get(f"fixed_point/{name}")
        for kind, row in {} if found is None else found["kinds"].items():
            asked = "" if found is None else f"{found['queries']:,}"
            cells = [name, kind, f"{row['first_tied']} of {asked}", str(row["queries_with_ties"])]
            cells += [str(row["ties"]), str(row["duplicates"]), str(row["changed_by_order"])]
            same = "" if found is None or kind == "float32" else percent(found["same_first"])
            rows.append([*cells, same])
    head = ["scene", "descriptors", "first place tied", "queries with ties", "ties in all"]
    head += ["equal entries", "answers changed by order", "same first as float32"]
    text = (
        f"HN descriptors (K = 16, alpha = 1/8, N = {findings.size['section_entries']:,}) times a "
        "power of two, rounded to int8; ties among the ten best, and the answers after adding the "
        "entries in another order. Ties go by id, so the order never matters."
    )
    return Section("Future work: fixed point", [Text(text), Rows(head, rows or [[MISSING] * 8])])


def _higher(findings: Findings) -> Section:
    rows = []
    for name in findings.tests:
        for point in ((major, 1 / 8) for major in MAJORS):
            found = findings.get(f"higher/{name}-{slug(point)}")
            if found is None:
                rows.append([name, str(point[0]), *[MISSING] * 5])
                continue
            speeds = {family: s for (family, _), s in speeds_of(found).items()}
            rate = f"{found['fpr95']:.4f} ({found['low']:.4f} to {found['high']:.4f})"
            cells = [name, str(point[0]), rate, percent(found["energy"])]
            cells.append(percent(found["phase2"]["matched"]))
            cells += [
                number(speeds[family].mean if family in speeds else None)
                for family in ("paper", "cascade")
            ]
            rows.append(cells)
    head = ["scene", "K", "FPR@95 (95% interval)", "energy in the major", "Phase 2"]
    return Section(
        f"Future work: higher K, alpha = 1/8, N = {findings.size['section_entries']:,}",
        [Rows([*head, "speed-up, Algorithm 1", "cascade"], rows)],
    )


def _hardest(findings: Findings) -> Section:
    trained = [r for r in findings.records if r["name"].startswith("hardest/")]
    rows = []
    for name in findings.tests:
        quality = findings.quality((8, 1 / 8), findings.tests.index(name))
        if quality is not None:
            interval = f"{quality.fpr95:.4f} ({quality.low:.4f} to {quality.high:.4f})"
            rows.append([name, "as in Table 1", "", interval])
        for record in trained:
            result = record["result"]
            found = result["scenes"][name]
            interval = f"{found['fpr95']:.4f} ({found['low']:.4f} to {found['high']:.4f})"
            negatives = "hardest in batch" if result["loss"] == "hardest" else "random"
            rows.append([name, negatives, str(result["batch"]), interval])
    how = (
        f"The last layer alone was trained, after the turn: {findings.size['head_epochs']} passes "
        f"over {findings.size['head_views']} views of every patch."
        if findings.settings["recipe"] == "turned"
        else "The whole network was trained, by the paper's schedule."
    )
    return Section(
        "Future work: K = 8 with hardest negatives and larger batches, alpha = 1/8",
        [Text(how), Rows(["scene", "negatives", "pairs per batch", "FPR@95"], rows)],
    )


def _cells(findings: Findings) -> Section:
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

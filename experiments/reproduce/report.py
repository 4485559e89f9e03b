"""The report: pictures, REPORT.md and index.html, rendered from the JSON of finished runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean

from hiernorm.learn.checkpoint import write_atomically
from hiernorm.reproduce.blocks import Rows, Section, Text, percent
from hiernorm.reproduce.claims.claim import UNKNOWN
from hiernorm.reproduce.claims.exactness import claim_exactness
from hiernorm.reproduce.claims.quality import claim_quality
from hiernorm.reproduce.claims.sizes import claim_sizes
from hiernorm.reproduce.claims.speed import claim_speed
from hiernorm.reproduce.findings import Findings
from hiernorm.reproduce.future import future_work
from hiernorm.reproduce.markdown import render_markdown
from hiernorm.reproduce.page import render_page
from hiernorm.reproduce.paper import load_paper
from hiernorm.reproduce.pictures import draw_pictures
from hiernorm.reproduce.sections import section_3, section_6, section_7
from hiernorm.reproduce.tables import table_1, table_2, table_3, table_4

TITLE = "Hierarchical Normalization, reproduced"
BUSY = 0.05
"""Share of other processes from which times mislead."""


def render_report(out: Path) -> Path:
    """Render what is finished; return the page.

    Parameters
    ----------
    out
        The folder of a reproduction.
    """
    findings = Findings(out)
    figures = out / "figures"
    drawn = draw_pictures(findings, figures)
    sections = [
        setting(findings),
        claims(findings),
        table_1(findings),
        table_2(findings),
        table_3(findings),
        table_4(findings),
        section_3(findings),
        section_6(findings),
        section_7(findings),
        *future_work(findings),
        runs(findings),
    ]
    report = render_markdown(TITLE, sections, drawn)
    write_atomically(out / "REPORT.md", report.encode())
    page = out / "index.html"
    write_atomically(page, render_page(TITLE, sections, figures, drawn).encode())
    return page


def setting(findings: Findings) -> Section:
    """What differs from the paper's setting: stated before anything else."""
    paper = load_paper()
    training = paper["training"]
    recipe = findings.settings["recipe"]
    made = (
        "the baseline's last layer turned so that LDA's directions lead; **nothing was trained** "
        "(`--recipe turned`), except in the section on K = 8"
        if recipe == "turned"
        else "the paper's fine-tuning (`--recipe paper`)"
    )
    machine = findings.records[0]["machine"] if findings.records else {}
    caches = ", ".join(f"{level} {size}" for level, size in machine.get("caches", {}).items())
    ours = f"{machine.get('cpu')}, {caches}, {machine.get('isa')}, {machine.get('system')}"
    theirs = paper["machine"]
    rows = [
        [
            "scenes",
            f"{training['train_scene']} to {', '.join(training['test_scenes'])} (UBC)",
            f"{findings.train} to {', '.join(findings.tests)}",
        ],
        [
            "baseline",
            training["backbone"].split(",")[0] + ", official weights",
            _baseline(findings),
        ],
        ["HN variants", "fine-tuned: triplet loss, Adam, batch 32, 30 or 10 epochs", made],
        ["databases", "UBC patches, N = 500,000; how they were had is not said", _pool(findings)],
        ["brute force", "SoA, 128 dimensions, C++", "FAISS IndexFlatIP"],
        ["machine", f"{theirs['cpu']}, {theirs['l3_mb']} MB L3, {theirs['compiler']}", ours],
        ["other load", "idle", _load(findings)],
        ["SIFT", "not said", _window(findings)],
    ]
    text = (
        f"The paper's figures are from: {paper['source']}. Ours: size `{findings.size['name']}`, "
        f"seed {findings.settings['seed']}, commit {machine.get('commit')}, "
        f"{machine.get('date', '')[:10]}. A ratio is ours over the paper's."
    )
    if findings.size["name"] == "smoke":
        text += " **A smoke run shows that everything works; none of its figures is a result.**"
    table = Rows(["", "the paper", "here"], rows)
    return Section("What differs from the paper's setting", [Text(text), table])


def _baseline(findings: Findings) -> str:
    name = findings.settings["baseline"]
    if name == "hardnet":
        return "HardNet, the weights that ship with hiernorm (see its model card)"
    return f"HardNet, {name}"


def _pool(findings: Findings) -> str:
    """How the largest databases were made."""
    texts = []
    for name in findings.tests:
        found = findings.get(f"data/{name}")
        if found is None:
            continue
        data = found["database"]
        kinds = ", ".join(f"{count:,} {_KINDS[kind]}" for kind, count in data["kinds"].items())
        held = len(found["images_held_out"])
        texts.append(
            f"{name}: {data['entries']:,} real patches ({kinds}; {data['own']:,} of the scene "
            f"itself, {found['distinct']:,} different descriptors), {held} images held out for "
            f"{found['queries']:,} queries"
        )
    return "; ".join(texts) or "not run"


_KINDS = {
    "scene": "of the scenes' own",
    "keypoints": "at keypoints of photos, the strongest of each",
    "other scales": "at the same keypoints, wider or narrower",
    "turned": "turned or mirrored",
}


def _load(findings: Findings) -> str:
    timed = ("speed", "graphs", "layout", "soft", "cells", "higher")
    shares = [
        record["share_of_other_processes"]
        for record in findings.records
        if record["name"].split("/")[0] in timed and record["share_of_other_processes"] is not None
    ]
    if not shares:
        return "unknown"
    text = (
        f"other processes took {percent(mean(shares))} of the processors on average while "
        f"searches were timed ({percent(min(shares))} to {percent(max(shares))})"
    )
    return (
        f"{text}: do not trust single times, trust ratios with care" * (mean(shares) > BUSY) or text
    )


def _window(findings: Findings) -> str:
    found = findings.get(f"quality/{findings.tests[0]}-sift")
    window = None if found is None else found["model"].rpartition("-")[2]
    return "not run" if window is None else f"OpenCV's, window {window} of 64 pixels"


def claims(findings: Findings) -> Section:
    """Every claim in one line."""
    kinds = (claim_exactness, claim_quality, claim_speed, claim_sizes)
    found = [claim for kind in kinds for claim in kind(findings)]
    verdicts = Counter(claim.verdict for claim in found)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    rows = [
        [claim.place, claim.says, f"**{claim.verdict}**", claim.evidence, claim.past]
        if claim.verdict != UNKNOWN
        else [claim.place, claim.says, UNKNOWN, "", ""]
        for claim in found
    ]
    head = ["where", "the paper says", "verdict", "evidence", "past the paper"]
    return Section("Claims", [Text(f"{len(found)} claims: {summary}."), Rows(head, rows)])


def runs(findings: Findings) -> Section:
    """Each run with its time and what else the machine did."""
    rows = [
        [
            record["name"],
            f"{record['seconds']:.0f}",
            _taken(record["share_of_other_processes"]),
            str(record["machine"]["commit"])[:12],
            record["machine"]["isa"],
        ]
        for record in findings.records
    ]
    text = "One JSON file each in `runs/`, with seed, settings, machine and versions."
    head = ["run", "seconds", "share of other processes", "commit", "instruction set"]
    return Section("Runs", [Text(text), Rows(head, rows)])


def _taken(share: float | None) -> str:
    """What others took of the processors; a run of milliseconds is too short to tell."""
    return "too short to tell" if share is None else percent(share)

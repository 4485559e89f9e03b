"""The data of a reproduction, and what differs from the paper's setting."""

from __future__ import annotations

from functools import partial
from statistics import mean

import numpy as np

from experiments.harness.page import Rows, Section, Text, plural
from experiments.harness.patches import find_photos
from experiments.harness.points import ALL_POINTS, Point, slug
from experiments.harness.records import Result
from experiments.reproduce.claims.reasons import list_loads
from experiments.reproduce.findings import Findings, load_paper
from experiments.reproduce.work import Part, Run, Work, describe_database
from experiments.speed.goals import BUSY_SHARE

PATCHES_PER_SECOND = 900
"""That one core describes: what the expected time is reckoned with."""


_KINDS = {
    "scene": "of the scenes' own",
    "keypoints": "at keypoints of photos, the strongest of each",
    "other scales": "at the same keypoints, wider or narrower",
    "turned": "turned or mirrored",
}


def plan(work: Work) -> list[Run]:
    """One run per scene and variant."""
    size = work.options.size
    return [
        Run(work.options.train, 20, partial(_describe_scene, work, work.options.train)),
        *(
            Run(f"variant-{slug(point)}", 2, partial(_make_variant, work, point))
            for point in ALL_POINTS
        ),
        *(
            Run(scene, size.entries / PATCHES_PER_SECOND / 2, partial(_gather, work, scene))
            for scene in work.options.tests
        ),
    ]


def _describe_scene(work: Work, name: str) -> Result:
    scene = work.databases.scene(name)
    return {
        "scene": name,
        "patches": len(scene),
        "points": len(scene.point_ids),
        "pairs": len(scene.pairs),
        "photos": len(find_photos(work.options.data, name)),
    }


def _make_variant(work: Work, point: Point) -> Result:
    """Train or turn it: what takes hours with the paper's recipe happens here."""
    variant = work.variant(point)
    log = work.variants.read_log(variant.name)
    return {"recipe": work.options.recipe, "variant": variant.name, "log": log}


def _gather(work: Work, name: str) -> Result:
    split = work.databases.split(name)
    data = work.databases.build(name, work.variants.plain, work.options.size.entries)
    return {
        **_describe_scene(work, name),
        "queries": len(split.queries),
        "images_held_out": sorted(split.images),
        "keypoint_queries": len(data.keypoints),
        "database": describe_database(data),
        "distinct": len(np.unique(data.entries, axis=0)),
    }


PART = Part("data", "The data: scenes, variants, databases of real patches", plan)


def setting(findings: Findings) -> Section:
    """What differs from the paper's setting: stated before anything else."""
    paper = load_paper()
    training = paper["training"]
    recipe = findings.settings["recipe"]
    made = (
        "the baseline's last layer turned so that LDA's directions lead; **nothing was trained** "
        "(`--recipe turned`), except in the section on K = 8"
        if recipe == "turned"
        else "turned, then its last two layers fine-tuned with the baseline as teacher "
        "(`--recipe tuned`)"
        if recipe == "tuned"
        else "the paper's fine-tuning (`--recipe paper`)"
    )
    record = findings.records[0] if findings.records else None
    machine = {} if record is None else record.machine
    caches = ", ".join(f"{level} {size}" for level, size in machine.get("caches", {}).items())
    ours = f"{machine.get('cpu')}, {caches}, {machine.get('isa')}, {machine.get('system')}"
    theirs = paper["machine"]
    trained = [findings.train, *findings.settings.get("more_train", [])]
    rows = [
        [
            "scenes",
            f"{training['train_scene']} to {', '.join(training['test_scenes'])} (UBC)",
            f"{', '.join(trained)} to {', '.join(findings.tests)}",
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
        f"seed {findings.settings['seed']}, commit {record and record.made_at}, "
        f"{((record and record.date) or '')[:10]}. A ratio is ours over the paper's."
    )
    table = Rows(["", "the paper", "here"], rows)
    return Section("What differs from the paper's setting", [Text(text), table])


def _baseline(findings: Findings) -> str:
    name = findings.settings["baseline"]
    if name == "hardnet":
        return "HardNet, the weights that ship with hiernorm (see its model card)"
    return f"the weights {name}"


def _pool(findings: Findings) -> str:
    """How the largest databases were made."""
    texts = []
    for name in findings.tests:
        found = findings.get(f"data/{name}")
        if found is None:
            continue
        data = found["database"]
        kinds = ", ".join(f"{count:,} {_KINDS[kind]}" for kind, count in data["kinds"].items())
        held = plural(len(found["images_held_out"]), "image")
        texts.append(
            f"{name}: {data['entries']:,} real patches ({kinds}; {data['own']:,} of the scene "
            f"itself, {found['distinct']:,} different descriptors), {held} held out for "
            f"{found['queries']:,} queries"
        )
    return "; ".join(texts) or "not run"


def _load(findings: Findings) -> str:
    shares = list_loads(findings)
    if not shares:
        return "unknown"
    text = (
        f"other processes took {mean(shares):.1%} of the processors on average while "
        f"searches were timed ({min(shares):.1%} to {max(shares):.1%})"
    )
    return (
        f"{text}: do not trust single times, trust ratios with care" * (mean(shares) > BUSY_SHARE)
        or text
    )


def _window(findings: Findings) -> str:
    found = findings.get(f"quality/{findings.tests[0]}-sift")
    window = None if found is None else found["model"].rpartition("-")[2]
    return "not run" if window is None else f"OpenCV's, window {window} of 64 pixels"

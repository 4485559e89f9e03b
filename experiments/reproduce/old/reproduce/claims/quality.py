"""Claims on the quality of descriptors: Table 1, and Sections 3, 5 and 7."""

from __future__ import annotations

from itertools import pairwise

from hiernorm.bench.cases import RECOMMENDED, Point
from hiernorm.reproduce.blocks import number, percent
from hiernorm.reproduce.claims.claim import Claim, count, judge
from hiernorm.reproduce.findings import Findings
from hiernorm.reproduce.work import POINTS

SMALL_COST = 1.1
"""The paper's own: 0.0064 over 0.0062 is 1.03. Up to a tenth counts as a small cost."""


def claim_quality(findings: Findings) -> list[Claim]:
    """All claims of this kind."""
    return [
        _monotone(findings, 16),
        _monotone(findings, 8),
        _small_cost(findings),
        _below_baseline(findings),
        _below_sift(findings),
        _harder_scene(findings),
        _posthoc(findings),
        _pca(findings),
        _larger_batches(findings),
    ]


def _monotone(findings: Findings, k: int) -> Claim:
    checks, texts = [], []
    for scene, name in enumerate(findings.tests):
        rates = [quality.fpr95 for _, quality in findings.qualities(scene, k)]
        checks += [later <= before for before, later in pairwise(rates)]
        texts.append(f"{name} {', '.join(f'{rate:.4f}' for rate in rates)}")
    return Claim(
        "Section 5.1",
        f"K = {k}: quality improves monotonically with alpha",
        judge(checks),
        f"{count(checks)} steps improve; FPR@95 for alpha = 0 to 1/4: {'; '.join(texts)}",
    )


def _small_cost(findings: Findings) -> Claim:
    checks, texts = [], []
    for scene, name in enumerate(findings.tests):
        ours, plain = findings.quality(RECOMMENDED, scene), findings.quality("plain", scene)
        if ours is not None and plain is not None:
            factor = ours.fpr95 / plain.fpr95 if plain.fpr95 else float("inf")
            checks.append(factor <= SMALL_COST)
            texts.append(f"{name} {plain.fpr95:.4f} to {ours.fpr95:.4f} ({factor:.2f}x)")
    return Claim(
        "Abstract",
        "K = 16, alpha = 1/8 costs next to nothing: FPR@95 0.0062 to 0.0064 on trevi (but 0.0201 "
        "to 0.0462 on halfdome)",
        judge(checks),
        "; ".join(texts),
        _plain_speed(findings),
    )


def _plain_speed(findings: Findings) -> str:
    """What the lossless rotation reaches with no cost in quality."""
    speeds = [(findings.speed(None, i, "cascade"), name) for i, name in enumerate(findings.tests)]
    known = [f"{number(speed.mean)}x on {name}" for speed, name in speeds if speed is not None]
    if not known:
        return ""
    return f"plain descriptors, no quality lost, by the lossless rotation: {', '.join(known)}"


def _below_baseline(findings: Findings) -> Claim:
    checks, texts = [], []
    for scene, name in enumerate(findings.tests):
        ours, plain = findings.quality((16, 1 / 4), scene), findings.quality("plain", scene)
        if ours is not None and plain is not None:
            checks.append(ours.fpr95 < plain.fpr95)
            texts.append(f"{name} {ours.fpr95:.4f} against {plain.fpr95:.4f}")
    return Claim(
        "Section 5.1",
        "K = 16, alpha = 1/4 is better than the plain baseline (trevi)",
        judge(checks),
        "; ".join(texts),
    )


def _below_sift(findings: Findings) -> Claim:
    checks, worse = [], []
    for scene, name in enumerate(findings.tests):
        sift = findings.quality("sift", scene)
        for point in POINTS:
            ours = findings.quality(point, scene)
            if sift is not None and ours is not None:
                checks.append(ours.fpr95 < sift.fpr95)
                if not checks[-1]:
                    worse.append(f"K={point[0]}, alpha={point[1]:g} on {name} ({ours.fpr95:.4f})")
    return Claim(
        "Section 5.1",
        "HN keeps its advantage over SIFT on both scenes (the paper's own K = 8 with alpha up to "
        "1/16 is behind SIFT on halfdome)",
        judge(checks),
        f"{count(checks)} are below SIFT" + (f"; not {', '.join(worse)}" if worse else ""),
    )


def _harder_scene(findings: Findings) -> Claim:
    checks = []
    whats: list[str | Point] = ["plain", *POINTS]
    for what in whats:
        first, second = findings.quality(what, 0), findings.quality(what, 1)
        if first is not None and second is not None:
            checks.append(second.fpr95 > first.fpr95)
    return Claim(
        "Section 5.1",
        "The second test scene is harder than the first for every configuration",
        judge(checks),
        f"{count(checks)}: {findings.tests[1]} against {findings.tests[0]}; other scenes than the "
        "paper's",
    )


def _posthoc(findings: Findings) -> Claim:
    prunes, improves, texts = [], [], []
    for name in findings.tests:
        before, after = (findings.get(f"posthoc/{name}-{how}") for how in ("posthoc", "made"))
        if before is None or after is None:
            continue
        shares = [result["phase2"]["matched"] for result in (before, after)]
        prunes.append(shares[1] < shares[0])
        improves.append(after["fpr95"] < before["fpr95"])
        texts.append(
            f"{name}: Phase 2 {percent(shares[0])} post hoc, {percent(shares[1])} after; FPR@95 "
            f"{before['fpr95']:.4f} and {after['fpr95']:.4f}"
        )
    return Claim(
        "Section 3",
        "HN post hoc prunes badly (9.2%); fine-tuning is necessary (1.1%)",
        judge([*prunes, *improves]),
        f"{'; '.join(texts)}. Fewer entries are left in {count(prunes)} scenes, quality is better "
        f"in {count(improves)}"
        if texts
        else "",
    )


def _pca(findings: Findings) -> Claim:
    checks, texts = [], []
    for name in findings.tests:
        found = findings.get(f"rotation/{name}")
        if found is None:
            continue
        row = next(row for row in found["rows"] if row["major"] == RECOMMENDED[0])
        checks.append(row["energy"] < 2 * row["uniform"])
        texts.append(
            f"{name}: 16 components hold {percent(row['energy'])} (evenly spread: "
            f"{percent(row['uniform'])}); a lossless rotation leaves "
            f"{percent(row['lossless_share_real_arithmetic'])} at K = 16, HN "
            f"{percent(found['hn']['matched'])}"
        )
    return Claim(
        "Section 7",
        "PCA of plain descriptors finds no dominant components and yields no useful compression",
        judge(checks),
        "; ".join(texts),
        "`Index(dim)` searches plain descriptors exactly by that rotation, no training",
    )


def _larger_batches(findings: Findings) -> Claim:
    rows = [r["result"] for r in findings.records if r["name"].startswith("hardest/")]
    random = [row for row in rows if row["loss"] == "triplet"]
    mined = [row for row in rows if row["loss"] == "hardest"]
    checks, texts = [], []
    for name in findings.tests if random and mined else []:
        base = random[0]["scenes"][name]["fpr95"]
        for row in mined:
            rate = row["scenes"][name]["fpr95"]
            checks.append(rate < base)
            texts.append(f"{name}, {row['batch']} pairs: {number(rate)} against {number(base)}")
    return Claim(
        "Future work",
        "K = 8 gains from hard negatives and larger batches",
        judge(checks),
        "; ".join(texts) + " with random negatives" * bool(texts),
    )

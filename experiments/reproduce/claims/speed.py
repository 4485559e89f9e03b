"""Speed: Algorithm 1, its layout and its model; the cascade."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

from experiments.harness.page import number, percent
from experiments.harness.points import ALL_POINTS, FASTEST, RECOMMENDED, slug
from experiments.reproduce.claims.claim import OURS, Claim, count, judge
from experiments.reproduce.claims.reasons import explain, other_timing, small_phase2
from experiments.reproduce.findings import Findings, paper_speed
from experiments.reproduce.layout import LAYOUT_POINTS, flop_model

AHEAD = 4
"""The cascade is to be at least so many times ahead of what the paper prints."""


def claim_fastest(findings: Findings) -> Claim:
    """The fastest exact point that the abstract names."""
    return _claim_speedup(findings, FASTEST, "13.7x and 12.7x with 0.4% evaluated in full")


def claim_recommended(findings: Findings) -> Claim:
    """The recommended point."""
    return _claim_speedup(findings, RECOMMENDED, "7.2x and 5.8x with 98.8% and 97.2% bypassed")


def _claim_speedup(findings: Findings, point: tuple[int, float], printed: str) -> Claim:
    """One point of Table 3."""
    checks, texts, past = [], [], []
    for scene, name in enumerate(findings.tests):
        ours, share = findings.speed(point, scene, "paper"), findings.phase2(point, scene)
        cascade = findings.speed(point, scene, "cascade")
        times, evaluated = paper_speed(point, scene)
        if ours is None or share is None or cascade is None:
            continue
        checks += [ours.mean >= times, share <= evaluated]
        texts.append(f"{name} {number(ours.mean)}x with {percent(share)} evaluated")
        past.append(f"{name} {number(cascade.mean)}x")
    return Claim(
        f"speed at K = {point[0]}, alpha = 1/{round(1 / point[1])}",
        "Table 3",
        f"K = {point[0]}, alpha = 1/{round(1 / point[1])}: {printed}",
        judge(checks),
        f"Algorithm 1 over FAISS flat: {'; '.join(texts)}" if texts else "",
        explain(other_timing(findings)),
        f"cascade: {'; '.join(past)}" if past else "",
    )


def claim_cascade(findings: Findings) -> Claim:
    """The cascade and the paper's speed."""
    checks, worst = [], float("inf")
    for scene in range(2):
        for point in ALL_POINTS:
            ours = findings.speed(point, scene, "cascade")
            if ours is not None:
                factor = ours.mean / paper_speed(point, scene)[0]
                checks.append(factor >= AHEAD)
                worst = min(worst, factor)
    return Claim(
        f"the cascade has at least {AHEAD} times the paper's speed-up",
        OURS,
        f"The cascade is at least {AHEAD} times the paper's printed speed-up in every row of "
        "Table 3",
        judge(checks),
        f"{count(checks)} rows; the least is {number(worst)} times" if checks else "",
    )


def claim_phase2(findings: Findings) -> Claim:
    """How much Phase 2 evaluates."""
    checks, most = [], [0.0, 0.0]
    for scene in range(2):
        for point in ALL_POINTS:
            share = findings.phase2(point, scene)
            if share is None:
                continue
            limits = (0.02, 0.07) if point[1] <= 1 / 8 else (0.066, 0.115)
            checks.append(share <= limits[scene])
            most[scene] = max(most[scene], share)
    return Claim(
        "Phase 2 evaluates few entries",
        "Section 6",
        "Phase 2 stays below 2% and 7% for alpha up to 1/8, below 6.6% and 11.5% at alpha = 1/4",
        judge(checks),
        f"at most {percent(most[0])} on {findings.tests[0]} and {percent(most[1])} on "
        f"{findings.tests[1]}"
        if checks
        else "",
    )


def claim_slower_with_alpha(findings: Findings) -> Claim:
    """Alpha and speed."""
    shares, speeds = [], []
    for scene in range(2):
        for k in (16, 8):
            points = [point for point in ALL_POINTS if point[0] == k]
            found = [findings.phase2(point, scene) for point in points]
            known = [share for share in found if share is not None]
            shares += [later >= before for before, later in pairwise(known)]
            times = [findings.speed(point, scene, "paper") for point in points]
            rates = [speed.mean for speed in times if speed is not None]
            speeds += [later <= before for before, later in pairwise(rates)]
    return Claim(
        "larger alpha is slower",
        "Section 6",
        "Larger alpha means more of Phase 2 and less speed",
        judge([*shares, *speeds]),
        f"Phase 2 grows in {count(shares)} steps, Algorithm 1 slows down in {count(speeds)}"
        if shares
        else "",
        explain(small_phase2(findings), other_timing(findings)),
    )


def claim_fastest_point(findings: Findings) -> Claim:
    """The fastest point."""
    checks, texts = [], []
    for scene, name in enumerate(findings.tests):
        speeds = {
            point: speed.mean
            for point in ALL_POINTS
            if (speed := findings.speed(point, scene, "paper")) is not None
        }
        if len(speeds) == len(ALL_POINTS):
            checks += [max(speeds, key=lambda p: speeds[p]) == (8, 0.0)]
            checks.append(speeds[8, 0.0] > 1.1 * speeds[8, 1 / 32])
            texts.append(
                f"{name}: {number(speeds[8, 0.0])}x, {number(speeds[8, 1 / 32])}x at alpha = 1/32"
            )
    return Claim(
        "K = 8, alpha = 0 is the fastest",
        "Section 6",
        "K = 8, alpha = 0 is the fastest (18.0x, 18.2x), with a sharp drop to alpha = 1/32",
        judge(checks),
        "; ".join(texts),
        explain(small_phase2(findings), other_timing(findings)),
    )


def claim_layout(findings: Findings) -> Claim:
    """Structures of arrays."""
    checks, texts = [], []
    for point in LAYOUT_POINTS:
        found = findings.get(f"layout/{slug(point)}")
        if found is not None:
            times = {name: mean(values) for name, values in found["seconds"].items()}
            factor = times["majors, AoS"] / times["majors, SoA"]
            checks.append(factor > 1)
            whole = times["brute force"] / times["majors, SoA"]
            texts.append(
                f"K={point[0]}: {number(factor)} times faster than AoS, {number(whole)} times than "
                "brute force"
            )
    return Claim(
        "structure of arrays pays",
        "Section 6",
        "Structure of arrays makes the scan of majors bandwidth-efficient",
        judge(checks),
        "; ".join(texts),
        past="int8 codes read a quarter of those bytes",
    )


def claim_order(findings: Findings) -> Claim:
    """The order of Phase 2."""
    checks, texts = [], []
    for point in LAYOUT_POINTS:
        found = findings.get(f"layout/{slug(point)}")
        if found is not None:
            times = {name: mean(values) for name, values in found["seconds"].items()}
            test, sort = times["skip test in index order"], times["sort of the scores"]
            checks.append(test < sort)
            evaluated = found["evaluated"]
            texts.append(
                f"K={point[0]}: test {1e3 * test:.2f} ms, sort {1e3 * sort:.2f} ms; evaluated "
                f"{number(evaluated['index'])} in index order, {number(evaluated['sorted'])} sorted"
            )
    return Claim(
        "index order beats sorting",
        "Section 3",
        "Index order beats sorting",
        judge(checks),
        "; ".join(texts),
    )


def claim_model(findings: Findings) -> Claim:
    """The FLOP model."""
    factors = []
    for scene in range(2):
        for point in ALL_POINTS:
            share, speed = findings.phase2(point, scene), findings.speed(point, scene, "paper")
            if share is not None and speed is not None:
                factors.append(speed.mean / flop_model(point, share))
    checks = [2 / 3 <= factor <= 3 / 2 for factor in factors]
    return Claim(
        "the FLOP model",
        "Section 6",
        "The FLOP model predicts the speed-up (7.8x for 7.8x)",
        judge(checks),
        f"measured over predicted: {number(min(factors))} to {number(max(factors))}; within a "
        f"factor of 1.5 in {count(checks)} rows"
        if factors
        else "",
        explain("The model counts operations alone.", other_timing(findings)),
    )

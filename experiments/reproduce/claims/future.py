"""What the paper leaves open."""

from __future__ import annotations

from experiments.harness.page import number, percent
from experiments.harness.points import FASTEST, RECOMMENDED, slug
from experiments.reproduce.claims.claim import HOLDS, UNKNOWN, Claim, judge
from experiments.reproduce.findings import Findings


def claim_soft(findings: Findings) -> Claim:
    """Soft mode."""
    texts = []
    for name in findings.tests:
        found = findings.get(f"soft/{name}")
        if found is not None:
            first, last = found["rows"][0], found["rows"][-1]
            texts.append(
                f"{name}: beta=0 recall {first['recall']:.4f}, {percent(first['proved'])} proved, "
                f"{number(first['speedup'])}x; beta=alpha {last['recall']:.4f}, "
                f"{number(last['speedup'])}x"
            )
    return Claim(
        "from exact to approximate search",
        "Section 7",
        "A threshold beta below alpha gives a spectrum from exact to approximate search",
        HOLDS if texts else UNKNOWN,
        "; ".join(texts),
        past="every answer says whether it was exact, or how far off it can be",
    )


def claim_cells(findings: Findings) -> Claim:
    """Cells."""
    checks, texts = [], []
    for n in (findings.size["section_entries"], findings.size["entries"]):
        for point in (RECOMMENDED, FASTEST):
            found = findings.get(f"cells/n{n}-{slug(point)}")
            if found is not None:
                ours, without = found["with cells"], found["without cells"]
                checks.append(ours["speedup"] > without["speedup"])
                texts.append(
                    f"K={point[0]}, N={n:,}: {percent(ours['scanned_share'])} of the majors read, "
                    f"{number(ours['speedup'] / without['speedup'])} times the speed without cells"
                )
    return Claim(
        "sub-linear indexing of the majors",
        "Future work",
        "Would sub-linear indexing of the majors help?",
        judge(checks),
        "; ".join(texts),
        past="and the answer stays exact: a cell is skipped under a certified bound",
        question=True,
    )

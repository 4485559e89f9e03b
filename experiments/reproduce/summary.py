"""The summary of a report: what was reproduced, what was not, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from experiments.harness.cards import Card, Item, Items, Tile, Tone
from experiments.harness.page import Section, Text, plural
from experiments.reproduce.claims import determinism, future, graphs, quality, speed
from experiments.reproduce.claims.claim import FAILS, HOLDS, IN_PART, OURS, UNKNOWN, Claim
from experiments.reproduce.claims.reasons import other_scenes, other_timing, other_training
from experiments.reproduce.findings import Findings

CLAIMS: tuple[Callable[[Findings], Claim], ...] = (
    determinism.claim_exact,
    determinism.claim_deterministic,
    determinism.claim_graphs_vary,
    graphs.claim_recall,
    determinism.claim_ties,
    future.claim_soft,
    partial(quality.claim_monotone, k=16),
    partial(quality.claim_monotone, k=8),
    quality.claim_small_cost,
    quality.claim_below_baseline,
    quality.claim_below_sift,
    quality.claim_harder_scene,
    quality.claim_posthoc,
    quality.claim_pca,
    quality.claim_larger_batches,
    speed.claim_fastest,
    speed.claim_recommended,
    speed.claim_cascade,
    speed.claim_phase2,
    speed.claim_slower_with_alpha,
    speed.claim_fastest_point,
    speed.claim_layout,
    speed.claim_order,
    speed.claim_model,
    graphs.claim_race,
    graphs.claim_graphs_at_large,
    graphs.claim_small_databases,
    graphs.claim_independent_of_size,
    graphs.claim_knee,
    future.claim_cells,
)

TONES: dict[str, Tone] = {HOLDS: "good", IN_PART: "part", FAILS: "bad", UNKNOWN: "none"}
VERBS = {
    HOLDS: ("claim holds", "claims hold"),
    IN_PART: ("claim holds in part", "claims hold in part"),
    FAILS: ("claim does not hold here", "claims do not hold here"),
    UNKNOWN: ("claim was not run", "claims were not run"),
}
"""By verdict: of one claim, and of several."""
ANSWERS = {HOLDS: "yes", IN_PART: "in part", FAILS: "no", UNKNOWN: "not run"}
"""To a question that the paper leaves open."""
TERMS = {
    HOLDS: "Reproduced",
    IN_PART: "Reproduced in part",
    FAILS: "Not reproduced",
    UNKNOWN: "Not run",
}

TITLE = "Hierarchical Normalization"


def title_of(findings: Findings) -> str:
    """The heading: it says "reproduced" only of the paper's own scenes."""
    if findings.size["name"] == "smoke":
        return f"{TITLE}, a smoke run"
    how = "reproduced" if findings.has_official_scenes else "re-run on other scenes"
    return f"{TITLE}, {how}"


def judge_claims(findings: Findings) -> list[Claim]:
    """All claims in order."""
    return [claim(findings) for claim in CLAIMS]


def summary(findings: Findings, claims: Sequence[Claim]) -> Section:
    """The section that opens the report."""
    return Section("Summary", [summary_card(findings, claims)])


def summary_card(findings: Findings, claims: Sequence[Claim]) -> Card:
    """Counts by verdict, names by verdict, and what explains the rest."""
    paper = [claim for claim in claims if claim.place != OURS and not claim.question]
    tiles, facts = [], []
    for verdict in TERMS:
        found = [claim for claim in paper if claim.verdict == verdict]
        if found:
            tiles.append(Tile(TONES[verdict], str(len(found)), VERBS[verdict][len(found) > 1]))
            facts.append((TERMS[verdict], "; ".join(claim.name for claim in found)))
    differs = (other_scenes(findings), other_training(findings), other_timing(findings))
    facts.append(("Why not all of it", " ".join(reason.full for reason in differs if reason)))
    facts += [
        ("Open in the paper", f"{claim.says} **{ANSWERS[claim.verdict].capitalize()}.**")
        for claim in claims
        if claim.question
    ]
    ours = [claim for claim in claims if claim.place == OURS]
    facts.append(("Past the paper", "; ".join(f"{c.name}: {c.verdict}" for c in ours)))
    if findings.size["name"] == "smoke":
        facts.append(
            ("Smoke run", "It shows that everything works; **none of its figures is a result.**")
        )
    return Card(tiles, facts)


def list_claims(claims: Sequence[Claim]) -> Section:
    """Every claim, grouped by verdict."""
    ours = [claim for claim in claims if claim.place == OURS]
    questions = [claim for claim in claims if claim.question]
    paper = [claim for claim in claims if claim.place != OURS and not claim.question]
    text = (
        f"{plural(len(paper), 'claim')} of the paper, {plural(len(questions), 'question')} that it "
        f"leaves open, {plural(len(ours), 'claim')} of ours."
    )
    groups: list[Text | Items] = [Text(text)]
    for verdict, (one, many) in VERBS.items():
        found = [claim for claim in paper if claim.verdict == verdict]
        if found:
            groups.append(_group(plural(len(found), one, many), found))
    groups.append(_group("Open in the paper", questions))
    groups.append(_group("Claims of ours", ours))
    return Section("Claims", groups)


def _group(title: str, claims: Sequence[Claim]) -> Items:
    return Items(title, [_item(claim) for claim in claims])


def _item(claim: Claim) -> Item:
    lines = []
    if claim.verdict != UNKNOWN:
        lines.append(("Evidence", claim.evidence))
        if claim.why and claim.verdict != HOLDS:
            lines.append(("What differs", claim.why))
        if claim.past:
            lines.append(("Past the paper", claim.past))
    verdict = ANSWERS[claim.verdict] if claim.question else claim.verdict
    return Item(TONES[claim.verdict], verdict, claim.place, claim.says, lines)

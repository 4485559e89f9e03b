"""Exact, and the same every time."""

from __future__ import annotations

from experiments.harness.page import plural
from experiments.reproduce.claims.claim import Claim, judge
from experiments.reproduce.determinism import summarise_builds
from experiments.reproduce.findings import Findings, speeds_of


def claim_exact(findings: Findings) -> Claim:
    """A run in which an engine disagreed would have stopped and left no file."""
    searches = [
        record.result
        for record in findings.records
        if record.name.split("/")[0] in ("speed", "graphs", "higher")
    ]
    recalls = [
        speed.recall
        for result in searches
        for (family, _), speed in speeds_of(result).items()
        if family in ("paper", "cascade")
    ]
    return Claim(
        "exact answers",
        "Theorem 1",
        "Two-phase search returns the nearest neighbour of exhaustive search",
        judge([recall == 1.0 for recall in recalls]),
        f"{plural(len(searches), 'database')}: both engines gave the ids and score bits of "
        "exhaustive search for every query and k = 10"
        if searches
        else "",
        past="proved for float32 and int8 too, where the paper's plain test can fail; each answer "
        "carries its certificate",
    )


def claim_deterministic(findings: Findings) -> Claim:
    """Theorem 2."""
    found = findings.get("determinism/ours")
    conditions = [] if found is None else found["conditions"]
    return Claim(
        "the same answer every time",
        "Theorem 2",
        "The answer is the same on every run and thread count, for a fixed order of the database",
        judge([c["changed"] == 0 for c in conditions]),
        f"{plural(len(conditions), 'search', 'searches')} over runs, threads, batches, orders and "
        f"instruction sets: {plural(sum(c['changed'] for c in conditions), 'answer')} changed"
        if conditions
        else "",
        past="for any order too, exact ties included: they go by id",
    )


def claim_graphs_vary(findings: Findings) -> Claim:
    """Graphs that are built again."""
    found = findings.get("determinism/hnswlib")
    rows = [] if found is None or not found["builds"] else summarise_builds(found)
    again = [row for row in rows if row["what"].startswith("again")]
    others = [row for row in rows if not row["what"].startswith("again")]
    texts = [f"ef={r['ef']} {r['what']}: {r['changed']}" for r in rows]
    asked = "" if found is None else f"first answers that change, of {found['queries']:,}: "
    alike = rows and not any(row["changed"] for row in again)
    return Claim(
        "answers of graphs vary",
        "Section 7",
        "HNSW's answers depend on construction order and threads, and vary from run to run",
        judge([any(row["changed"] for row in kind) for kind in (again, others)] if rows else []),
        asked + "; ".join(texts) if rows else "",
        "hnswlib that is built again in the same way answers as before." if alike else "",
    )


def claim_ties(findings: Findings) -> Claim:
    """Ties of quantised descriptors."""
    checks, texts, changed = [], [], 0
    for name in findings.tests:
        found = findings.get(f"fixed_point/{name}")
        if found is not None:
            real, whole = found["kinds"]["float32"], found["kinds"]["int8"]
            checks.append(whole["ties"] > real["ties"])
            changed += real["changed_by_order"] + whole["changed_by_order"]
            texts.append(
                f"{name}: {plural(real['ties'], 'tie')} with float32, {whole['ties']} with int8 "
                f"({whole['first_tied']} for the first place)"
            )
    return Claim(
        "ties",
        "Section 3, remark",
        "Ties are negligible with float32 and likelier with quantised descriptors, where the "
        "order of the database then matters",
        judge(checks),
        "; ".join(texts),
        past=f"answers that another order of insertion changed, int8 included: {changed}",
    )

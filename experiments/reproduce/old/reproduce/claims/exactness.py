"""Claims on exactness and determinism: the theorems, Section 7, and what was left open."""

from __future__ import annotations

from itertools import pairwise

from hiernorm.bench.goals import TRUSTED_RECALL
from hiernorm.reproduce.blocks import number, percent
from hiernorm.reproduce.claims.claim import HOLDS, UNKNOWN, Claim, judge
from hiernorm.reproduce.findings import Findings, speeds_of
from hiernorm.reproduce.sections import summarise_builds


def claim_exactness(findings: Findings) -> list[Claim]:
    """All claims of this kind."""
    return [
        _exact(findings),
        _deterministic(findings),
        _graphs_vary(findings),
        _recall(findings),
        _ties(findings),
        _soft(findings),
    ]


def _exact(findings: Findings) -> Claim:
    """A run in which an engine disagreed would have stopped and left no file."""
    searches = [
        record["result"]
        for record in findings.records
        if record["name"].split("/")[0] in ("speed", "graphs", "higher")
    ]
    recalls = [
        speed.recall
        for result in searches
        for (family, _), speed in speeds_of(result).items()
        if family in ("paper", "cascade")
    ]
    return Claim(
        "Theorem 1",
        "Two-phase search returns the nearest neighbour of exhaustive search",
        judge([recall == 1.0 for recall in recalls]),
        f"{len(searches)} databases: both engines gave the ids and score bits of exhaustive search "
        "for every query and k = 10"
        if searches
        else "",
        "proved for float32 and int8 too, where the paper's plain test can fail; each answer "
        "carries its certificate",
    )


def _deterministic(findings: Findings) -> Claim:
    found = findings.get("determinism/ours")
    conditions = [] if found is None else found["conditions"]
    return Claim(
        "Theorem 2",
        "The answer is the same on every run and thread count, for a fixed order of the database",
        judge([c["changed"] == 0 for c in conditions]),
        f"{len(conditions)} searches over runs, threads, batches, orders and instruction sets: "
        f"{sum(c['changed'] for c in conditions)} answers changed"
        if conditions
        else "",
        "for any order too, exact ties included: they go by id",
    )


def _graphs_vary(findings: Findings) -> Claim:
    found = findings.get("determinism/hnswlib")
    rows = [] if found is None or not found["builds"] else summarise_builds(found)
    again = [row for row in rows if row["what"].startswith("again")]
    others = [row for row in rows if not row["what"].startswith("again")]
    texts = [f"ef={r['ef']} {r['what']}: {r['changed']}" for r in rows]
    asked = "" if found is None else f" of {found['queries']:,} first answers change"
    return Claim(
        "Section 7",
        "HNSW's answers depend on construction order and threads, and vary from run to run",
        judge([any(row["changed"] for row in kind) for kind in (again, others)] if rows else []),
        "; ".join(texts) + asked if rows else "",
    )


def _recall(findings: Findings) -> Claim:
    needed = []
    for n in findings.size["graph_entries"]:
        speeds = findings.graph_speeds(n, 1 / 8)
        graphs = [(name, s) for (family, name), s in speeds.items() if family == "hnswlib"]
        if graphs:
            rival = findings.rival(n)
            least = f"{graphs[0][0].rpartition(' ')[2]} {graphs[0][1].recall:.4f}"
            wanted = "none" if rival is None else rival[0].rpartition(" ")[2]
            needed.append((n, wanted, least, graphs[0][1].recall))
    falls = [later[3] < before[3] for before, later in pairwise(needed)]
    return Claim(
        "Section 7 (ii)",
        "HNSW's recall depends on scale and is not guaranteed",
        judge([any(falls)] if falls else []),
        "; ".join(
            f"N={n:,}: {least}, {wanted} for {TRUSTED_RECALL}" for n, wanted, least, _ in needed
        ),
    )


def _ties(findings: Findings) -> Claim:
    checks, texts, changed = [], [], 0
    for name in findings.tests:
        found = findings.get(f"fixed_point/{name}")
        if found is not None:
            real, whole = found["kinds"]["float32"], found["kinds"]["int8"]
            checks.append(whole["ties"] > real["ties"])
            changed += real["changed_by_order"] + whole["changed_by_order"]
            texts.append(
                f"{name}: {real['ties']} ties with float32, {whole['ties']} with int8 "
                f"({whole['first_tied']} for the first place)"
            )
    return Claim(
        "Section 3, remark",
        "Ties are negligible with float32 and likelier with quantised descriptors, where the "
        "order of the database then matters",
        judge(checks),
        "; ".join(texts),
        f"answers that another order of insertion changed, int8 included: {changed}",
    )


def _soft(findings: Findings) -> Claim:
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
        "Section 7",
        "A threshold beta below alpha gives a spectrum from exact to approximate search",
        HOLDS if texts else UNKNOWN,
        "; ".join(texts),
        "every answer says whether it was exact all the same, or how far off it can be",
    )

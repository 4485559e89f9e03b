"""Section 6: memory layout, the order of Phase 2, and the model of FLOPs and bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from experiments.harness.conditions import hold
from experiments.harness.page import MISSING, Rows, Section, Text, number
from experiments.harness.points import ALL_POINTS, Point, fraction, slug
from experiments.harness.records import Result
from experiments.reproduce.findings import DIM, Findings, paper_speed
from experiments.reproduce.work import Part, Run, Work
from hiernorm.reference import Float32Array

LAYOUT_POINTS: tuple[Point, ...] = ((16, 1 / 8), (8, 1 / 8))

LINE = 64
"""Bytes that a random read of a minor brings at least: a cache line."""


def plan(work: Work) -> list[Run]:
    """One run per K, on the first test scene."""
    return [Run(slug(point), 40, partial(_measure, work, point)) for point in LAYOUT_POINTS]


def _measure(work: Work, point: Point) -> Result:
    size = work.options.size
    data = work.databases.build(work.options.tests[0], work.variant(point), size.entries)
    queries = data.queries[: size.queries]
    with hold(1, "single"):
        times = _time_scans(data.entries, queries, point, size.runs, size.seconds)
    orders = [count_evaluated(data.entries, query, point) for query in queries]
    return {
        "entries": len(data.entries),
        "point": point,
        "seconds": times,
        "evaluated": {name: float(np.mean([o[name] for o in orders])) for name in orders[0]},
    }


def _time_scans(
    entries: Float32Array, queries: Float32Array, point: Point, runs: int, seconds: float
) -> dict[str, list[float]]:
    """Seconds per query of each step, run by run: one BLAS product does every scan."""
    major, alpha = point
    majors = np.ascontiguousarray(entries[:, :major])
    scores = {i: majors @ queries[i, :major] for i in range(len(queries))}
    best = {i: float(entries[int(s.argmax())] @ queries[i]) for i, s in scores.items()}
    steps: dict[str, Callable[[int], Any]] = {
        "brute force": lambda i: entries @ queries[i],
        "majors, AoS": lambda i: entries[:, :major] @ queries[i, :major],
        "majors, SoA": lambda i: majors @ queries[i, :major],
        "skip test in index order": lambda i: np.flatnonzero(scores[i] + alpha > best[i]),
        "sort of the scores": lambda i: np.argsort(-scores[i]),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    number = 0
    for _ in range(runs):
        for name, step in steps.items():
            step(number % len(queries))
            start, done = time.perf_counter(), 0
            while done == 0 or time.perf_counter() - start < seconds:
                step((number + done) % len(queries))
                done += 1
            times[name].append((time.perf_counter() - start) / done)
        number += done
    return times


def count_evaluated(entries: Float32Array, query: Float32Array, point: Point) -> dict[str, int]:
    """How many entries Phase 2 evaluates in each order, Algorithm 1's rule applied to all at once.

    What is skipped never exceeds the best so far, so the running maximum over all entries is that
    over the evaluated ones.
    """
    major, alpha = point
    full = (entries @ query).astype(np.float64)
    scores = (entries[:, :major] @ query[:major]).astype(np.float64)
    first = full[int(scores.argmax())]
    counts = {}
    for name, order in (("index", np.arange(len(full))), ("sorted", np.argsort(-scores))):
        before = np.maximum.accumulate(np.concatenate([[first], full[order][:-1]]))
        counts[name] = int((scores[order] + alpha > before).sum())
    return counts


PART = Part("layout", "Section 6: memory layout, scan order, FLOP and bandwidth model", plan)


def section_6(findings: Findings) -> Section:
    """Layout, scan order, and the model of FLOPs and bytes."""
    rows = []
    for point in LAYOUT_POINTS:
        found = findings.get(f"layout/{slug(point)}")
        if found is None:
            rows.append([str(point[0]), *[MISSING] * 7])
            continue
        times = {name: mean(values) for name, values in found["seconds"].items()}
        rows.append(
            [
                str(point[0]),
                *(f"{1e3 * times[name]:.2f}" for name in times),
                number(found["evaluated"]["index"]),
                number(found["evaluated"]["sorted"]),
            ]
        )
    head = ["K", "brute force, ms", "majors AoS", "majors SoA", "skip test, index order"]
    head += ["sort of the scores", "evaluated, index order", "evaluated, sorted"]
    return Section(
        "Section 6: layout, scan order and the FLOP model",
        [
            Text(
                f"N = {findings.size['entries']:,}, alpha = 1/8, milliseconds per query: one BLAS "
                "product with one thread for each scan, so that only the layout differs. The "
                "skip test reads the stored scores once; a sorted scan must sort them first."
            ),
            Rows(head, rows),
            Text(
                "The model: FLOPs of brute force over those of both phases, D / (K + share x "
                "(D - K)); and bytes alike, a Phase-2 entry costing whole cache lines. Measured "
                "is Algorithm 1 over FAISS flat (Table 3)."
            ),
            _model(findings),
        ],
    )


def _model(findings: Findings) -> Rows:
    rows = []
    for scene, name in enumerate(findings.tests):
        for point in ALL_POINTS:
            share, speed = findings.phase2(point, scene), findings.speed(point, scene, "paper")
            row = [name, str(point[0]), fraction(point[1]), number(paper_speed(point, scene)[0])]
            if share is None or speed is None:
                rows.append([*row, *[MISSING] * 4])
                continue
            flops = flop_model(point, share)
            row += [number(flops), number(byte_model(point, share)), number(speed.mean)]
            rows.append([*row, number(speed.mean / flops)])
    head = ["scene", "K", "alpha", "paper measured", "FLOP model", "byte model", "ours measured"]
    return Rows([*head, "measured over FLOP model"], rows)


def flop_model(point: Point, share: float) -> float:
    """The speed-up that counting multiplications predicts.

    Examples
    --------
    >>> round(flop_model((16, 1 / 32), 0.004), 1)
    7.8
    """
    major, _ = point
    return DIM / (major + share * (DIM - major))


def byte_model(point: Point, share: float) -> float:
    """The speed-up that counting bytes predicts: float32, minors in whole cache lines.

    Examples
    --------
    >>> byte_model((16, 0.0), 0.0)
    8.0
    """
    major, _ = point
    minor = -(-4 * (DIM - major) // LINE) * LINE
    return 4 * DIM / (4 * major + share * minor)

"""Section 7, relation to PCA: the energy of leading components, and what pruning they allow."""

from __future__ import annotations

from functools import partial

import numpy as np

import hiernorm
from hiernorm.bench.cases import RECOMMENDED
from hiernorm.learn.describers import Description
from hiernorm.learn.evaluate import judge_description
from hiernorm.reference import Float32Array, Float64Array
from hiernorm.reproduce.measure import measure_phase2
from hiernorm.reproduce.sources import scene_source
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work
from hiernorm.rotation import fit_rotation, unit_rows

MAJORS = (8, 16, 24, 32, 64)

PART_QUERIES = 20
"""Queries whose scores are held at a time."""


def plan(work: Work) -> list[Run]:
    """One run per scene."""
    return [Run(scene, 60, partial(_measure, work, scene)) for scene in work.options.tests]


def _measure(work: Work, name: str) -> Result:
    size, plain = work.options.size, work.workshop.plain
    data = work.warehouse.build(name, plain, size.section_entries)
    queries = data.queries[: size.queries]
    # As the paper would: fitted on the training scene, applied to another.
    train = plain.body.features(scene_source(work.warehouse.scene(work.options.train)))
    trained = fit_rotation(plain.describe(train).descriptors)
    scene = work.warehouse.scene(name)
    views = trained.apply(
        plain.describe(work.warehouse.scene_features(name, plain.body)).descriptors
    )
    energy = np.square(views).mean(axis=0)
    rows = []
    for major in MAJORS:
        cut = Description(unit_rows(views[:, :major]).astype(np.float32))
        quality = judge_description(scene, f"PCA-{major}", cut, size.rounds, work.options.seed)
        index = hiernorm.Index(data.entries.shape[1], major=major, cells=False)
        index.add(data.entries)
        certificate = index.search(queries, 1, threads=1, batch_size=1).certificate
        rows.append(
            {
                "major": major,
                "energy": float(energy[:major].sum() / energy.sum()),
                "uniform": major / len(energy),
                "truncated_fpr95": quality.fpr95,
                "lossless_share": float(certificate.phase2_share.mean()),
                "lossless_share_real_arithmetic": _bound_share(data.entries, queries, major),
            }
        )
    made = work.variant(RECOMMENDED)
    hn = work.warehouse.build(name, made, size.section_entries)
    return {
        "rows": rows,
        "hn": measure_phase2(hn, RECOMMENDED, size.queries),
        "point": RECOMMENDED,
    }


def _bound_share(entries: Float32Array, queries: Float32Array, major: int) -> float:
    """Share of entries whose bound after a PCA of the entries reaches the best score."""
    rotation = fit_rotation(entries)
    turned, asked = (rotation.apply(rows) for rows in (entries, queries))
    tails, asked_tails = (_tail(rows, major) for rows in (turned, asked))
    left = 0
    for first in range(0, len(asked), PART_QUERIES):
        part = asked[first : first + PART_QUERIES]
        majors = part[:, :major] @ turned[:, :major].T
        best = (majors + part[:, major:] @ turned[:, major:].T).max(axis=1, keepdims=True)
        bound = majors + np.outer(asked_tails[first : first + PART_QUERIES], tails)
        left += int((bound >= best).sum())
    return left / (len(asked) * len(turned))


def _tail(rows: Float64Array, major: int) -> Float64Array:
    norms: Float64Array = np.sqrt(np.square(rows[:, major:]).sum(axis=1))
    return norms


PART = Part("rotation", "Section 7: PCA of the plain descriptors", plan)

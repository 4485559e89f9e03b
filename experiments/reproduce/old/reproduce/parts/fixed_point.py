"""Future work, fixed point: int8 HN descriptors, their ties, and the order that stays."""

from __future__ import annotations

from functools import partial

import numpy as np

import hiernorm
from hiernorm.bench.cases import RECOMMENDED
from hiernorm.reference import Float32Array
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work

K = 10
LARGEST = 127


def plan(work: Work) -> list[Run]:
    """One run per scene."""
    return [Run(scene, 30, partial(_measure, work, scene)) for scene in work.options.tests]


def _measure(work: Work, name: str) -> Result:
    size = work.options.size
    data = work.warehouse.build(name, work.variant(RECOMMENDED), size.section_entries)
    shift = _choose_shift(data.entries)
    rows = {}
    answers = {}
    for kind, entries, queries in (
        ("float32", data.entries, data.queries),
        ("int8", _quantise(data.entries, shift), _quantise(data.queries, shift)),
    ):
        hits = _search(entries, queries, np.arange(len(entries)))
        again = _search(entries, queries, _shuffled(len(entries), work.options.seed))
        equal = hits.scores[:, 1:] == hits.scores[:, :-1]
        rows[kind] = {
            "first_tied": int(equal[:, 0].sum()),
            "ties": int(equal.sum()),
            "queries_with_ties": int(equal.any(axis=1).sum()),
            "changed_by_order": int((hits.ids != again.ids).any(axis=1).sum()),
            "duplicates": len(entries) - len(np.unique(entries, axis=0)),
        }
        answers[kind] = hits.ids[:, 0]
    return {
        "entries": len(data.entries),
        "queries": len(data.queries),
        "k": K,
        "shift": shift,
        "kinds": rows,
        "same_first": float((answers["float32"] == answers["int8"]).mean()),
    }


def _choose_shift(entries: Float32Array) -> int:
    """The power of two by which descriptors are multiplied: the largest that int8 can hold."""
    return int(np.floor(np.log2(LARGEST / float(np.abs(entries).max()))))


def _quantise(rows: Float32Array, shift: int) -> Float32Array:
    """Whole numbers from -127 to 127, kept as float32, which holds their products exactly."""
    steps: Float32Array = np.rint(rows * np.float32(2.0**shift))
    return np.clip(steps, -LARGEST, LARGEST)


def _shuffled(entries: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 8]).permutation(entries)


def _search(entries: Float32Array, queries: Float32Array, order: np.ndarray) -> hiernorm.Hits:
    """Search entries that were added in some order; the ids say which is which."""
    major, alpha = RECOMMENDED
    index = hiernorm.Index(entries.shape[1], major=major, alpha=alpha)
    index.add(entries[order], ids=order)
    return index.search(queries, K, threads=1)


PART = Part("fixed_point", "Future work: int8 descriptors and ties", plan)

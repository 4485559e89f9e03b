"""Small databases to attack, and the answers that they must give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array, exhaustive_search
from hiernorm.settings import IndexSettings, Metric
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.manifest import Parameters

DIM, MAJOR, ALPHA, K = 6, 2, 1 / 8, 3


@dataclass(frozen=True)
class Victim:
    """A database on the disk, queries, and the right ids and scores."""

    path: Path
    rows: dict[int, Float32Array]
    queries: Float32Array
    ids: Int64Array
    scores: Float64Array

    def ask(self) -> str:
        """``"right"``, ``"refused"``, or ``"wrong"`` if an answer differs without an error."""
        try:
            with hiernorm.Database.open(self.path) as db:
                hits = db.search(self.queries, K)
                some = list(self.rows)[:: len(self.rows) // 8]
                rows = db.reconstruct(some)
                ids = db.ids
        except DatabaseError:
            return "refused"
        right = (
            np.array_equal(hits.ids, self.ids)
            and np.array_equal(hits.scores, self.scores)
            and np.array_equal(rows, [self.rows[i] for i in some])
            and np.array_equal(ids, sorted(self.rows))
        )
        return "right" if right else "wrong"


@contextmanager
def grouped() -> Iterator[None]:
    """Databases that group entries into cells however few they are, so that there are cones."""
    settings = Parameters.settings

    def with_cells(self: Parameters, threads: int | None = None) -> IndexSettings:
        return replace(settings(self, threads), cells=True)

    with mock.patch.object(Parameters, "settings", with_cells):
        yield


def make_victim(
    path: Path, *, hierarchical: bool, metric: Metric, entries: int, seed: int
) -> Victim:
    """A database of one segment with codes and cones, some of whose entries are deleted."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((entries + 4, DIM))
    rows = hiernorm.normalize(values, MAJOR, ALPHA) if hierarchical else values.astype(np.float32)
    major, alpha = (MAJOR, ALPHA) if hierarchical else (None, None)
    made = hiernorm.Database.create(path, DIM, major=major, alpha=alpha, metric=metric)
    made.close()
    with grouped(), hiernorm.Database.open(path) as db:
        db.add(rows[:entries], range(entries))
        db.delete(range(0, entries, 9))
    kept = {i: rows[i] for i in range(entries) if i % 9}
    ids = np.array(list(kept), np.int64)
    found = [exhaustive_search(q, rows[ids], ids, K, metric) for q in rows[entries:]]
    right_ids = np.array([hit_ids for hit_ids, _ in found])
    right_scores = np.array([scores for _, scores in found])
    return Victim(path, kept, rows[entries:], right_ids, right_scores)

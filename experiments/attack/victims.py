"""Small databases to attack, and the answers that they must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array, exhaustive_search
from hiernorm.settings import IndexSettings, Metric
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.manifest import Parameters

DIM, MAJOR, ALPHA, K = 6, 2, 1 / 8, 3
METRICS: tuple[Metric, ...] = ("ip", "cosine", "l2")


@dataclass(frozen=True)
class Victim:
    """Files on the disk, queries, and the right ids and scores.

    ``look`` opens the files with default settings and returns what it read there beside the hits,
    and what that must be.
    """

    path: Path
    queries: Float32Array
    ids: Int64Array
    scores: Float64Array
    look: Callable[[], tuple[Any, list[tuple[Any, Any]]]]

    def files(self) -> list[Path]:
        """The files that may be damaged."""
        found = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        return [file for file in found if file.name != "lock"]

    def ask(self) -> str:
        """``"right"``, ``"refused"``, or ``"wrong"`` if an answer differs without an error."""
        try:
            hits, others = self.look()
        except DatabaseError:
            return "refused"
        right = np.array_equal(hits.ids, self.ids) and np.array_equal(hits.scores, self.scores)
        return "right" if right and all(_same(*pair) for pair in others) else "wrong"


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        return np.array_equal(found, expected)
    return bool(found == expected)


@contextmanager
def grouped() -> Iterator[None]:
    """Databases that group entries into cells however few they are, so that there are cones."""
    settings = Parameters.settings

    def with_cells(self: Parameters, threads: int | None = None) -> IndexSettings:
        return replace(settings(self, threads), cells=True)

    with mock.patch.object(Parameters, "settings", with_cells):
        yield


def make_victims(folder: Path, entries: int, seed: int, *, few: bool) -> dict[str, Victim]:
    """A database of each kind of vectors and metric, one with payload, and a saved index."""
    folder.mkdir()
    kinds = [("HN", metric) for metric in METRICS] + [("plain", metric) for metric in METRICS]
    found = {
        f"{kind} vectors, {metric}": make_victim(
            folder / f"{kind}-{metric}",
            hierarchical=kind == "HN",
            metric=metric,
            entries=entries,
            seed=seed,
        )
        for kind, metric in (kinds[::4] if few else kinds)
    }
    found["payload and string keys"] = make_payload_victim(folder / "payload", entries, seed)
    found["a saved index"] = make_index_victim(folder / "saved.hni", entries, seed)
    for victim in found.values():
        assert victim.ask() == "right"
    return found


def _vectors(entries: int, seed: int, hierarchical: bool) -> Float32Array:
    values = np.random.default_rng(seed).standard_normal((entries + 4, DIM))
    return hiernorm.normalize(values, MAJOR, ALPHA) if hierarchical else values.astype(np.float32)


def _right(
    rows: Float32Array, ids: Int64Array, queries: Float32Array, metric: Metric
) -> tuple[Int64Array, Float64Array]:
    found = [exhaustive_search(query, rows, ids, K, metric) for query in queries]
    return np.array([hit_ids for hit_ids, _ in found]), np.array([scores for _, scores in found])


def make_victim(
    path: Path, *, hierarchical: bool, metric: Metric, entries: int, seed: int
) -> Victim:
    """A database of two segments with codes and cones, some of whose entries are deleted."""
    rows = _vectors(entries, seed, hierarchical)
    major, alpha = (MAJOR, ALPHA) if hierarchical else (None, None)
    hiernorm.Database.create(path, DIM, major=major, alpha=alpha, metric=metric).close()
    first = entries - entries // 4
    with grouped(), hiernorm.Database.open(path) as db:
        db.add(rows[:first], range(first))
        db.add(rows[first:entries], range(first, entries))
        db.delete(range(0, entries, 9))
        assert db.info()["segments"] == 2
    ids = np.array([i for i in range(entries) if i % 9], np.int64)
    some = ids[:: len(ids) // 8]

    def look() -> tuple[Any, list[tuple[Any, Any]]]:
        with hiernorm.Database.open(path) as db:
            hits = db.search(rows[entries:], K)
            return hits, [(db.reconstruct(some), rows[some]), (db.ids, ids)]

    return Victim(path, rows[entries:], *_right(rows[ids], ids, rows[entries:], metric), look)


def make_payload_victim(path: Path, entries: int, seed: int) -> Victim:
    """A database with string keys and payload columns, some of whose values are missing."""
    rows = _vectors(entries, seed, hierarchical=False)
    keys = [f"photo {i}" for i in range(entries)]
    years = [None if i % 7 == 0 else 2000 + i % 5 for i in range(entries)]
    payload = {"year": years, "place": [f"place {i % 4}" for i in range(entries)]}
    hiernorm.Database.create(path, DIM, string_keys=True).close()
    with hiernorm.Database.open(path) as db:
        db.add(rows[:entries], keys, payload=payload)
        ids = np.array([int(db.payload([key])["id"][0].as_py()) for key in keys], np.int64)
        columns = db.payload().to_pydict()
    year = np.array([value == 2003 for value in years])
    of_year = _right(rows[:entries][year], ids[year], rows[entries:], "ip")[0]

    def look() -> tuple[Any, list[tuple[Any, Any]]]:
        with hiernorm.Database.open(path) as db:
            hits = db.search(rows[entries:], K)
            filtered = db.search(rows[entries:], K, where="year = 2003")
            return hits, [
                (filtered.ids, of_year),
                (db.payload().to_pydict(), columns),
                (db.reconstruct(keys[::9]), rows[:entries:9]),
            ]

    return Victim(path, rows[entries:], *_right(rows[:entries], ids, rows[entries:], "ip"), look)


def make_index_victim(path: Path, entries: int, seed: int) -> Victim:
    """A file of ``Index.save``."""
    rows = _vectors(entries, seed, hierarchical=True)
    index = hiernorm.Index(DIM, major=MAJOR, alpha=ALPHA, cells=True)
    index.add(rows[:entries])
    index.save(path)
    ids = np.arange(entries)

    def look() -> tuple[Any, list[tuple[Any, Any]]]:
        loaded = hiernorm.Index.load(path)
        hits = loaded.search(rows[entries:], K)
        return hits, [(loaded.reconstruct(ids[::9]), rows[:entries:9]), (loaded.ids, ids)]

    return Victim(path, rows[entries:], *_right(rows[:entries], ids, rows[entries:], "ip"), look)

"""What the tests of the database share: a dictionary as its model, and small segments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from hiernorm.settings import IndexSettings
from hiernorm.storage.manifest import Parameters
from support import assert_same_hits, expected_hits

D, MAJOR, ALPHA = 6, 2, 0.125
Model = dict[int, Float32Array]


@contextmanager
def with_cells(cells: bool | None) -> Iterator[None]:
    """Databases that group entries into cells always, never, or (None) where it pays."""
    settings = Parameters.settings

    def settings_with_cells(self: Parameters, threads: int | None = None) -> IndexSettings:
        return replace(settings(self, threads), cells=cells)

    with mock.patch.object(Parameters, "settings", settings_with_cells):
        yield


@contextmanager
def small_segments(entries: int = 64, coded: int = 4, cells: bool | None = None) -> Iterator[None]:
    """Segments of few entries that have codes, and cells if asked for."""
    with (
        with_cells(cells),
        mock.patch("hiernorm.storage.transaction.SEGMENT_VALUES", entries * MAJOR),
        mock.patch("hiernorm.storage.encoding.LEAST_CODED", coded),
    ):
        yield


def create(path: Path, kind: str = "hn", metric: str = "ip", dim: int = D) -> hiernorm.Database:
    """An empty database for HN or for plain vectors."""
    if kind == "hn":
        return hiernorm.Database.create(path, dim, major=MAJOR, alpha=ALPHA, metric=metric)
    return hiernorm.Database.create(path, dim, metric=metric)


def vectors(seed: int, count: int, dim: int = D) -> Float32Array:
    """Normalised rows, some of which are equal to others: ties."""
    rng = np.random.default_rng(seed)
    rows = hiernorm.normalize(rng.standard_normal((count, dim)), MAJOR, ALPHA)
    rows[rng.random(count) < 0.2] = hiernorm.normalize(np.ones(dim), MAJOR, ALPHA)
    return rows


QUERIES = vectors(99, 4)


def arrays_of(model: Model, dim: int = D) -> tuple[Int64Array, Float32Array]:
    """Ids in ascending order, and their rows."""
    ids = np.array(sorted(model), np.int64)
    rows = np.array([model[i] for i in ids.tolist()], np.float32).reshape(len(ids), dim)
    return ids, rows


def right_hits(
    model: Model, k: int, metric: str = "ip", queries: Float32Array = QUERIES
) -> tuple[Int64Array, Float64Array]:
    """The reference's answer over the model."""
    ids, rows = arrays_of(model, queries.shape[1])
    return expected_hits(queries, rows, k, metric, ids)


def assert_equals_model(
    db: hiernorm.Database, model: Model, metric: str = "ip", queries: Float32Array = QUERIES
) -> None:
    """Entries, vectors and answers are those of the model."""
    ids, rows = arrays_of(model, queries.shape[1])
    np.testing.assert_array_equal(db.ids, ids)
    assert len(db) == len(ids)
    np.testing.assert_array_equal(db.reconstruct(ids), rows)
    for k in (1, 5):
        hits = db.search(queries, k)
        assert_same_hits(hits, right_hits(model, k, metric, queries))
        assert hits.certificate.exact.all()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}

"""Builds of sharded databases that are interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiernorm
from database_support import ALPHA, MAJOR, QUERIES, vectors
from hiernorm.distributed import ShardedDatabase, build
from ray_cluster import PATIENCE
from sharded_support import assert_equals_index


class InterruptedBuildError(Exception):
    """Somebody pressed a key."""


def write_parquet(path: Path, ids: np.ndarray, rows: np.ndarray) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lists = arrow.FixedSizeListArray.from_arrays(rows.ravel(), rows.shape[1])
    parquet.write_table(arrow.table({"ids": ids, "vectors": lists}), path)


def check_interrupted_build(folder: Path, steps: tuple[str, ...], shards: int) -> None:
    """Interrupted in each of the steps, and called again: as if it had not been."""
    rows = vectors(1, 300)
    ids = 100 + np.random.default_rng(0).permutation(200)
    np.save(folder / "first.npy", rows[:100])  # ids 0 ... 99
    write_parquet(folder / "second.parquet", ids, rows[100:])
    model = dict(enumerate(rows[:100])) | dict(zip(ids.tolist(), rows[100:], strict=True))
    sources = [folder / "first.npy", folder / "second.parquet"]
    options: dict[str, Any] = {"shards": shards, "major": MAJOR, "alpha": ALPHA}
    path = folder / "db"
    left = list(steps)

    def interrupt(step: str, done: int, total: int | None) -> None:
        assert total == 300
        if step in left and done > 0:
            left.remove(step)
            raise InterruptedBuildError

    for _ in steps:
        with pytest.raises(InterruptedBuildError):
            build(path, sources, progress=interrupt, **options)
        with pytest.raises(hiernorm.DatabaseError, match=r"has no shards\.json"):
            ShardedDatabase.open(path)
    with pytest.raises(ValueError, match="a build of other sources or parameters"):
        build(path, sources[:1], **options)
    assert build(path, sources, progress=interrupt, **options) == 300
    with pytest.raises(FileExistsError, match="is a database already"):
        build(path, sources, **options)
    with ShardedDatabase.open(path, deadline=PATIENCE) as db:
        assert_equals_index(db, model)
        assert db.add(QUERIES[:1]) == 1  # ids go on behind the largest
        assert db.ids[-1] == 300

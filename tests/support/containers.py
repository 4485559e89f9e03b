"""Everything that can be searched, by name: an index, a database, a database in three shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hiernorm
from database_support import small_segments
from hiernorm.distributed import ShardedDatabase
from hiernorm.reference import Float32Array, Int64Array
from sharded_support import in_process

CONTAINERS = ("Index", "Database", "three shards")
Searchable = hiernorm.Index | hiernorm.Database | ShardedDatabase


@contextmanager
def empty(
    container: str,
    vectors: str,
    dim: int,
    major: int,
    alpha: float = 0.125,
    metric: str = "ip",
    **further: Any,
) -> Iterator[Searchable]:
    """A container of one of CONTAINERS, without entries; ``vectors`` is "hn" or "plain".

    Segments are small and have codes however few their entries: several of them are searched.
    """
    options: dict[str, Any] = {"metric": metric, **further}
    if vectors == "hn":
        options |= {"major": major, "alpha": alpha}
    if container == "Index":
        yield hiernorm.Index(dim, **options)
        return
    # Mapped files cannot be removed on Windows.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, small_segments(entries=4000):
        path = Path(folder) / "db"
        if container == "Database":
            yield hiernorm.Database.create(path, dim, **options)
        else:
            with in_process(), ShardedDatabase.create(path, dim, shards=3, **options) as db:
                yield db


@contextmanager
def holding(
    x: Float32Array,
    container: str,
    vectors: str,
    major: int,
    alpha: float = 0.125,
    metric: str = "ip",
    ids: Int64Array | None = None,
) -> Iterator[Searchable]:
    """A container with the rows of ``x``."""
    with empty(container, vectors, x.shape[1], major, alpha, metric) as found:
        found.add(x, ids)
        yield found

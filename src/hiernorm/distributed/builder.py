"""Bulk build with Ray Data: files or a dataset in, a sharded database out.

1. *Split*: tasks read the sources and write one part file per shard; the journal records each.
2. *Fill*: one task per shard adds the part files to it, as one change.
3. The manifest of the sharded database is written: only now does the database exist.

An interrupted build is continued by calling :func:`build` again: it skips what the journal records.
Part files of a task that died or ran twice have no record and are never used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hiernorm.arrays import MAX_ID, as_count
from hiernorm.distributed.build_journal import BuildJournal
from hiernorm.distributed.creation import MAX_SHARDS, prepare_folders
from hiernorm.distributed.input_splits import describe_sources, first_dim, list_splits
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import MANIFEST, ShardsManifest, pin_of, shard_name
from hiernorm.distributed.partition import partition_dataset, partition_files
from hiernorm.distributed.session import connect
from hiernorm.distributed.staging import STAGING, read_parts
from hiernorm.progress import BuildProgressCallback
from hiernorm.settings import Metric
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import Parameters, read_manifest

SHARD_LOCK_SECONDS = 60.0
"""How long a task waits for a dying one that still holds the lock of its shard."""


def build(
    path: str | os.PathLike[str],
    source: Any,
    *,
    shards: int,
    major: int | None = None,
    alpha: float | None = None,
    metric: Metric = "ip",
    address: str | None = None,
    progress: BuildProgressCallback | None = None,
) -> int:
    """Make a sharded database from files or from a Ray dataset; returns the number of entries.

    After an interruption or failure, call it again with the same arguments: it continues where it
    stopped, and no entry is lost or added twice. The database exists after the last step only.

    Parameters
    ----------
    path
        Folder that all nodes see: new, empty, or that of an interrupted build.
    source
        The name of a ``.parquet``, ``.npy``, ``.npz`` or ``.safetensors`` file, or a list of names,
        which all nodes see. Vectors are called ``vectors`` (or are the only matrix), ids ``ids``;
        without ids, rows are numbered through all files in the order given. Or a
        ``ray.data.Dataset`` with columns ``vectors`` and ``ids``: its last step may be the network
        that makes the vectors.
    shards, major, alpha, metric
        As for :meth:`ShardedDatabase.create`.
    address
        As for :meth:`ShardedDatabase.open`.
    progress
        Called with the step (``"split"``, ``"fill"``), entries done, and entries in all or None.

    Raises
    ------
    ValueError
        For NaN, different dimensions, an id that is there twice, or arguments that are not those
        of the build that was interrupted.
    """
    as_count("shards", shards, most=MAX_SHARDS)
    folder = Location(path).folder
    ray = connect(address)
    report = progress or (lambda *_: None)
    files = None if _is_dataset(source) else _as_files(source)
    dim = first_dim(files) if files is not None else _dataset_dim(source)
    parameters = Parameters(dim, major, None if alpha is None else float(alpha), metric)
    parameters.settings()
    plan = {
        "parameters": parameters.members(),
        "shards": shards,
        "sources": None if files is None else describe_sources(files),
    }
    folder.mkdir(parents=True, exist_ok=True)
    staging = folder / STAGING
    with WriterLock(folder, 0.0):
        if (folder / MANIFEST).exists():
            return _finish(folder, staging)
        prepare_folders(folder, parameters, shards)
        journal = BuildJournal(staging, plan)
        if files is not None:
            partition_files(journal, list_splits(files), parameters, shards, report)
        else:
            partition_dataset(journal, source, parameters, shards, report)
        _fill(ray, folder, journal, shards, report)
        pins = tuple(pin_of(read_manifest(folder / shard_name(s))) for s in range(shards))
        next_id = min(journal.largest_id + 1, MAX_ID) if journal.entries else 0
        whole = replace(ShardsManifest(parameters, pins), generation=1, next_id=max(next_id, 0))
        if whole.entries != journal.entries:
            raise DatabaseError(
                f"{folder}: {journal.entries} entries were read, the shards have {whole.entries}"
            )
        whole.write(folder)
        shutil.rmtree(staging, ignore_errors=True)
    return whole.entries


def _finish(folder: Path, staging: Path) -> int:
    """Finish a build that was interrupted after its last step; any other database is an error."""
    if not BuildJournal.exists(staging):
        raise FileExistsError(f"{folder} is a database already: choose another folder")
    shutil.rmtree(staging, ignore_errors=True)
    return Location(folder).read_manifest().entries


def _fill(
    ray: Any, folder: Path, journal: BuildJournal, shards: int, report: BuildProgressCallback
) -> None:
    fill = ray.remote(fill_shard)
    waiting = [
        fill.remote(str(folder), shard, journal.parts.get(shard, [])) for shard in range(shards)
    ]
    done = 0
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        try:
            done += sum(ray.get(ready))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        report("fill", done, journal.entries)


def fill_shard(folder: str, shard: int, names: list[str]) -> int:
    """Add all part files to a shard unless that is done; returns its number of entries."""
    path = Path(folder) / shard_name(shard)
    db = Database.open(path, lock_timeout=SHARD_LOCK_SECONDS)
    if db.generation == 0 and names:
        db.add(read_parts(Path(folder) / STAGING, names))
    return len(db)


def _is_dataset(source: Any) -> bool:
    return hasattr(source, "map_batches")


def _dataset_dim(dataset: Any) -> int:
    rows = dataset.take_batch(1, batch_format="numpy")
    if not {"ids", "vectors"} <= set(rows):
        raise ValueError(f"the dataset has columns {sorted(rows)}, expected ids and vectors")
    return len(rows["vectors"][0])


def _as_files(source: Any) -> list[Path]:
    single = isinstance(source, (str, os.PathLike))
    names: Iterable[Any] = [source] if single else source
    files = [Path(os.fspath(name)).absolute() for name in names]
    if not files:
        raise ValueError("expected at least one file of vectors")
    return files

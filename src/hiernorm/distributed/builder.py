"""Bulk building with Ray Data: embeddings in, shards out, continued where it stopped.

1. *Split*: tasks read the sources and write one part per shard; what each task wrote is noted.
2. *Fill*: one task per shard adds the shard's parts to it, as one change.
3. The manifest of the whole is written: only now there is a database.

Each step leaves on the disk what it has done, under names that are noted when it is done: called
again, :func:`build` skips that, and what a task wrote that died or ran twice is never used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hiernorm.arrays import as_count
from hiernorm.distributed.creation import MOST_SHARDS, prepare_folders
from hiernorm.distributed.input_splits import describe_sources, first_dim, list_units
from hiernorm.distributed.location import Place
from hiernorm.distributed.manifest import MANIFEST, ShardsManifest, pin_of, shard_name
from hiernorm.distributed.partition import Notes, split_dataset, split_files
from hiernorm.distributed.session import connect
from hiernorm.distributed.staging import STAGING, read_parts
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.importer import MOST_ID
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import Parameters, read_manifest

SHARD_LOCK_SECONDS = 60.0
"""That a task waits for one before it that is about to die."""

Report = Callable[[str, int, "int | None"], None]
"""Called with the step, the entries done in it, and how many there will be if that is known."""


def build(
    path: str | os.PathLike[str],
    source: Any,
    *,
    shards: int,
    major: int | None = None,
    alpha: float | None = None,
    metric: str = "ip",
    address: str | None = None,
    progress: Report | None = None,
) -> int:
    """Make a sharded database from files or from a Ray dataset; how many entries it has.

    Interrupted or failed, it is called again with the same arguments and goes on where it stopped;
    no entry is lost or there twice. There is no database before the last step.

    Parameters
    ----------
    path
        Folder that all nodes see; new, empty, or of a build that was interrupted.
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
    as_count("shards", shards, most=MOST_SHARDS)
    folder = Place(path).folder
    ray = connect(address)
    report = progress or (lambda *_: None)
    files = None if _is_dataset(source) else _as_files(source)
    dim = first_dim(files) if files is not None else _dataset_dim(source)
    parameters = Parameters(dim, major, None if alpha is None else float(alpha), metric)
    parameters.settings()
    plan = {
        "parameters": vars(parameters),
        "shards": shards,
        "sources": None if files is None else describe_sources(files),
    }
    folder.mkdir(parents=True, exist_ok=True)
    staging = folder / STAGING
    with WriterLock(folder, 0.0):
        if (folder / MANIFEST).exists():
            return _finished(folder, staging)
        prepare_folders(folder, parameters, shards)
        notes = Notes(staging, plan)
        if files is not None:
            split_files(notes, list_units(files), parameters, shards, report)
        else:
            split_dataset(notes, source, parameters, shards, report)
        _fill(ray, folder, notes, shards, report)
        pins = tuple(pin_of(read_manifest(folder / shard_name(s))) for s in range(shards))
        next_id = min(notes.largest_id + 1, MOST_ID) if notes.entries else 0
        whole = replace(ShardsManifest(parameters, pins), generation=1, next_id=max(next_id, 0))
        if whole.entries != notes.entries:
            raise DatabaseError(
                f"{folder}: {notes.entries} entries were read, the shards have {whole.entries}"
            )
        whole.write(folder)
        shutil.rmtree(staging, ignore_errors=True)
    return whole.entries


def _finished(folder: Path, staging: Path) -> int:
    """A build that was interrupted after its last step; any other database is not ours."""
    if not Notes.are_in(staging):
        raise FileExistsError(f"{folder} is a database already: choose another folder")
    shutil.rmtree(staging, ignore_errors=True)
    return Place(folder).read_shards().entries


def _fill(ray: Any, folder: Path, notes: Notes, shards: int, report: Report) -> None:
    fill = ray.remote(fill_shard)
    waiting = [
        fill.remote(str(folder), shard, notes.parts.get(shard, [])) for shard in range(shards)
    ]
    done = 0
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        try:
            done += sum(ray.get(ready))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        report("fill", done, notes.entries)


def fill_shard(folder: str, shard: int, names: list[str]) -> int:
    """Add all parts to a shard, unless they are there; how many entries it has."""
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

"""The staging area: entries for each shard in part files, which any node can read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.distributed.manifest import shard_name
from hiernorm.distributed.payload import split_keys
from hiernorm.distributed.placement import split_by_shard
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import agree
from hiernorm.storage.exporter import export_entries
from hiernorm.storage.payload_file import PayloadFile, write_payload
from hiernorm.storage.sources import read_pieces
from hiernorm.storage.tensors import TensorFile
from hiernorm.storage.vector_files import count_rows

STAGING = "staging"
"""Folder of the part files of a change or build in progress."""


def write_parts(
    folder: Path, ids: Int64Array, rows: Float32Array, shards: int, payload: Any = None
) -> dict[int, tuple[str, int]]:
    """Write entries to one new part file per shard; returns its name and its number of entries.

    Their payload, an Arrow table in the types of its columns, goes to a file beside it.

    Names are never used twice. Files of a task that died, or that ran twice, are therefore not
    mistaken for the files whose names were returned.
    """
    written = {}
    for shard, at in split_by_shard(ids, shards).items():
        name = f"{shard_name(shard)}/{uuid.uuid4().hex}.safetensors"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        export_entries(path, ids[at], rows.shape[1], iter([(ids[at], rows[at])]), None)
        if payload is not None:
            _write_payload(_payload_path(path), payload, at)
        written[shard] = (name, len(at))
    return written


def _payload_path(path: Path) -> Path:
    return path.with_suffix(".payload.safetensors")


def _write_payload(path: Path, payload: Any, at: Int64Array) -> None:
    arrow = import_extra("pyarrow", extra=EXTRA)
    columns, table = agree((), payload.take(arrow.array(at)).combine_chunks())
    write_payload(path, columns, len(at), lambda c: table.column(c.name).combine_chunks())


def read_parts(
    folder: Path, names: list[str], string_keys: bool = False
) -> Iterator[tuple[Any, Float32Array, Any]]:
    """Ids (or string keys), rows and payload of part files, one piece after the other."""
    for name in names:
        beside, table, done = _payload_path(folder / name), None, 0
        if beside.exists():
            file = TensorFile(beside)
            found = PayloadFile(file, count_rows(folder / name) or 0)
            table = found.table(list(found.columns.values()))
        for rows, ids in read_pieces(folder / name):
            if ids is None:
                raise ValueError(f"{folder / name} has no ids")
            part = None if table is None else table.slice(done, len(rows))
            done += len(rows)
            named: Any = np.asarray(ids, np.int64)
            if string_keys:
                named, part = split_keys(part)
            yield named, np.asarray(rows, np.float32), part

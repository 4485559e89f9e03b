"""The staging area: entries for each shard in part files, which any node can read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.distributed.manifest import shard_name
from hiernorm.distributed.placement import split_by_shard
from hiernorm.storage.exporter import export_entries
from hiernorm.storage.sources import read_pieces

STAGING = "staging"
"""Folder of the part files of a change or build in progress."""


def write_parts(
    folder: Path, ids: Int64Array, rows: Float32Array, shards: int
) -> dict[int, tuple[str, int]]:
    """Write entries to one new part file per shard; returns its name and its number of entries.

    Names are never used twice. Files of a task that died, or that ran twice, are therefore not
    mistaken for the files whose names were returned.
    """
    written = {}
    for shard, at in split_by_shard(ids, shards).items():
        name = f"{shard_name(shard)}/{uuid.uuid4().hex}.safetensors"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        export_entries(path, ids[at], rows.shape[1], iter([(ids[at], rows[at])]), None)
        written[shard] = (name, len(at))
    return written


def read_parts(folder: Path, names: list[str]) -> Iterator[tuple[Int64Array, Float32Array]]:
    """The entries of part files, one piece after the other."""
    for name in names:
        for rows, ids in read_pieces(folder / name):
            if ids is None:
                raise ValueError(f"{folder / name} has no ids")
            yield np.asarray(ids, np.int64), np.asarray(rows, np.float32)

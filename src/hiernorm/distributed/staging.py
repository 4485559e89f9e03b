"""Entries on their way to a shard, in files that any node can read."""

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
"""Folder of the parts of a change or of a build that is under way."""


def write_parts(
    folder: Path, ids: Int64Array, rows: Float32Array, shards: int
) -> dict[int, tuple[str, int]]:
    """Write entries to one new file per shard; its name in ``folder`` and its entries.

    Names are never used twice: what a task wrote that died, or ran again, is not mistaken for what
    was asked for; whoever asked keeps the names that were returned.
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
    """The entries of parts, one piece after the other."""
    for name in names:
        for rows, ids in read_pieces(folder / name):
            if ids is None:
                raise ValueError(f"{folder / name} has no ids")
            yield np.asarray(ids, np.int64), np.asarray(rows, np.float32)

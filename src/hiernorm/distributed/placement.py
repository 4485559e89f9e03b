"""Which shard an id belongs to: a fixed hash, so that placement is the same everywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Int64Array
from hiernorm.arrays import as_count, as_ids

NAME = "splitmix64"
"""The name of the hash in manifests."""


def shard_of(ids: npt.ArrayLike, shards: int) -> Int64Array:
    """The shard ``0 ... shards - 1`` of every id ``(n,)``.

    The finaliser of splitmix64 on the id's 64 bits, modulo the number of shards: consecutive ids
    and even ids also spread evenly.

    Examples
    --------
    >>> shard_of([0, 1, 2, 3, -1], shards=3).tolist()
    [1, 2, 1, 0, 2]
    """
    count = np.uint64(as_count("shards", shards))
    mixed = as_ids(ids).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) % count).astype(np.int64)


def split_by_shard(ids: Int64Array, shards: int) -> dict[int, Int64Array]:
    """The positions in ``ids`` of the ids of each shard, in ascending order; no empty shards.

    Examples
    --------
    >>> {shard: at.tolist() for shard, at in split_by_shard(np.arange(4), 3).items()}
    {0: [3], 1: [0, 2], 2: [1]}
    """
    placed = shard_of(ids, shards)
    order = np.argsort(placed, kind="stable")
    found, first = np.unique(placed[order], return_index=True)
    pieces = np.split(order, first[1:]) if len(found) else []
    return {int(shard): at for shard, at in zip(found, pieces, strict=True)}

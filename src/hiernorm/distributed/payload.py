"""Payload of a sharded database: columns of all shards, gathered and asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hiernorm.array_types import Int64Array
from hiernorm.arrays import as_ids
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.placement import split_by_shard
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, KEY
from hiernorm.payload.columns import Column, complete
from hiernorm.payload.keys import ABSENT, are_keys, as_keys, ids_of_keys
from hiernorm.payload.tables import named_columns

CallShards = Callable[[str, dict[int, tuple[Any, ...]]], dict[int, Any]]
"""Calls a method of some shards with their pins and further arguments."""


class ShardedPayload:
    """The payload of the entries of one generation of all shards."""

    def __init__(self, manifest: ShardsManifest, call: CallShards) -> None:
        self._manifest = manifest
        self._call = call

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the database."""
        return self._manifest.columns

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._manifest.parameters.string_keys

    def gather(self, ids: Int64Array, names: Sequence[str] | None = None) -> Any:
        """The columns of ``ids`` as an Arrow table, in the order of ids; KeyError without one."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        columns = named_columns(self.columns, names)
        positions = split_by_shard(ids, self._manifest.shards)
        pins = self._manifest.pins
        wanted = [column.name for column in columns]
        parts = self._call(
            "payload", {shard: (pins[shard], ids[at], wanted) for shard, at in positions.items()}
        )
        places, taken, tables = np.empty(len(ids), np.int64), 0, [complete(columns, None, 0)]
        for shard, at in positions.items():
            tables.append(complete(columns, parts[shard], len(at)))
            places[at] = taken + np.arange(len(at))
            taken += len(at)
        return arrow.concat_tables(tables).take(arrow.array(places)).combine_chunks()

    def ids_of(self, values: Any, *, ignore_missing: bool = False) -> Int64Array:
        """The ids that ``values`` stand for: ids, or string keys; -1 for an unknown key."""
        if not are_keys(values):
            return as_ids(values)
        if not self.string_keys:
            raise TypeError(
                "ids are integers in this database, strings came: create one with string_keys=True"
            )
        keys = as_keys(values)
        hashed = ids_of_keys(keys)
        positions = split_by_shard(hashed, self._manifest.shards)
        pins = self._manifest.pins
        known = np.full(len(keys), ABSENT, np.int64)
        found = self._call(
            "ids_of",
            {shard: (pins[shard], [keys[i] for i in at]) for shard, at in positions.items()},
        )
        for shard, at in positions.items():
            known[at] = found[shard]
        if not ignore_missing and (known == ABSENT).any():
            raise KeyError(f"key {keys[int(np.argmax(known == ABSENT))]!r} is not in the database")
        return known


def split_keys(table: Any) -> tuple[list[str], Any]:
    """The string keys of a table of new entries, and its other columns; None without any."""
    keys: list[str] = table.column(KEY).to_pylist()
    rest = table.drop_columns([KEY])
    return keys, rest if rest.column_names else None

"""The writer of a sharded database: a two-phase commit over the shards that a change concerns.

Under the lock of the sharded database, every shard concerned prepares its next generation. Then the
manifest of the sharded database is replaced, which commits the change. Then the shards publish it.
A process that dies before the manifest is replaced has changed nothing. One that dies after it
leaves work that the next change does first and that readers do not depend on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_ids, as_new_ids, as_rows, following_ids, next_id_after
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.payload import ShardedPayload, split_keys
from hiernorm.distributed.placement import split_by_shard
from hiernorm.distributed.server import ShardChange
from hiernorm.distributed.staging import STAGING, write_parts
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column
from hiernorm.payload.keys import as_keys, as_new_keys, ids_of_keys, refuse_equal_ids
from hiernorm.progress import ProgressCallback
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.payload_queue import PayloadQueue
from hiernorm.storage.sources import (
    as_array,
    is_columns,
    is_source,
    read_entries,
    refuse_columns,
)
from hiernorm.storage.vector_files import Columns, count_rows

PUBLISH_SECONDS = 10.0
"""How long a change waits for shards to publish it: it is committed, they may do so later."""


class ShardedWriter:
    """Makes changes to all shards, one at a time."""

    def __init__(
        self, location: Location, actor_pool: ActorPool, like: _core.Index, deadline: float
    ) -> None:
        self._location = location
        self._actor_pool = actor_pool
        self._like = like
        self._deadline = deadline

    @contextmanager
    def begin(self, lock_timeout: float) -> Iterator[ShardsManifest]:
        """Hold the lock; yields the manifest of the newest generation."""
        with WriterLock(self._location.folder, lock_timeout):
            self._remove_staging()
            try:
                yield self._location.read_manifest()
            finally:
                self._remove_staging()

    def _remove_staging(self) -> None:
        shutil.rmtree(self._location.folder / STAGING, ignore_errors=True)

    def insert(
        self,
        base: ShardsManifest,
        x: Any,
        ids: npt.ArrayLike | None,
        progress: ProgressCallback | None,
        *,
        replacing: bool,
        payload: Any = None,
    ) -> tuple[int, ShardsManifest]:
        """Add or replace entries; returns how many, and the new manifest."""
        kind = "upsert" if replacing else "insert"
        x, named = as_array(x), is_columns(payload)
        queue = PayloadQueue(base.columns, None if named else payload)
        if not is_source(x):
            refuse_columns(named)
            until = self._until()
            rows = as_rows("vectors", x, base.parameters.dim)
            checked, keys, next_id = self._checked(base, rows, ids, base.next_id, kind, until)
            queue.append(len(rows), None, keys)
            queue.finish(len(rows))
            table = queue.take_table(len(rows))
            changes = {
                shard: _change(kind, checked[at], rows[at], table, at, keys is not None)
                for shard, at in split_by_shard(checked, base.shards).items()
            }
            changed = self.apply(base, changes, next_id, until, queue.columns)
            if progress is not None:
                progress(len(rows), len(rows))
            return len(rows), changed
        return self._insert_pieces(base, x, ids, progress, kind, payload if named else False, queue)

    def _insert_pieces(
        self,
        base: ShardsManifest,
        source: Any,
        given: Any,
        progress: ProgressCallback | None,
        kind: str,
        columns: Columns,
        queue: PayloadQueue,
    ) -> tuple[int, ShardsManifest]:
        """Insert a source that may be larger than memory, by part files in the staging area."""
        folder = self._location.folder / STAGING
        names: dict[int, list[str]] = {}
        total, taken, next_id = count_rows(source), 0, base.next_id
        waited = 0.0  # for shards: the time that the source takes to be read does not count
        if given is not None:
            given = as_keys(given) if base.parameters.string_keys else as_ids(given)
        for x, own_ids, payload in read_entries(source, columns):
            piece_ids: Any = own_ids
            if given is not None:
                piece_ids = given[taken : taken + len(x)]
            rows = as_rows("vectors", x, base.parameters.dim)
            start = time.monotonic()
            until = start + self._deadline - waited
            checked, keys, next_id = self._checked(base, rows, piece_ids, next_id, kind, until)
            waited += time.monotonic() - start
            queue.append(len(rows), payload, keys)
            table = queue.take_table(len(rows))
            for shard, (name, _) in write_parts(folder, checked, rows, base.shards, table).items():
                names.setdefault(shard, []).append(name)
            taken += len(rows)
            if progress is not None:
                progress(taken, total)
        if given is not None and len(given) != taken:
            raise ValueError(f"{taken} vectors need {taken} ids, got {len(given)}")
        queue.finish(taken)
        changes = {
            shard: ShardChange(kind, folder=str(folder), names=tuple(parts))
            for shard, parts in names.items()
        }
        return taken, self.apply(base, changes, next_id, self._until() - waited, queue.columns)

    def _checked(
        self,
        base: ShardsManifest,
        rows: Float32Array,
        given: Any,
        next_id: int,
        kind: str,
        until: float,
    ) -> tuple[Int64Array, list[str] | None, int]:
        """Check rows and ids with the errors of a single database.

        Returns ids, string keys if the database has them, and the next id.
        """
        n, keys = len(rows), None
        if base.parameters.string_keys:
            keys = as_new_keys(given, n, "database")
            ids = ids_of_keys(keys)
            refuse_equal_ids(ids, keys)
        else:
            ids = following_ids(next_id, n) if given is None else as_new_ids(given, n)
        self._like.check(rows, np.arange(len(rows)))
        order = np.argsort(ids, kind="stable")
        again = order[1:][ids[order[1:]] == ids[order[:-1]]]
        if len(again):
            raise ValueError(f"{_name(ids, keys, int(again[0]))} is given twice")
        if kind == "insert" and given is not None:
            found = self.holds(base, ids, until)
            if found.any():
                raise ValueError(
                    f"{_name(ids, keys, int(np.argmax(found)))} is in the database already: "
                    "upsert replaces it"
                )
        return ids, keys, next_id_after(next_id, ids)

    def _until(self) -> float:
        """When a change that begins now is to be done, by the monotonic clock."""
        return time.monotonic() + self._deadline

    def holds(self, base: ShardsManifest, ids: Int64Array, until: float) -> BoolArray:
        """Which of ``ids`` are in the database."""
        positions = split_by_shard(ids, base.shards)
        arguments = {shard: (base.pins[shard], ids[at]) for shard, at in positions.items()}
        found = np.zeros(len(ids), np.bool_)
        for shard, answer in self.call(base, "holds", arguments, until).items():
            found[positions[shard]] = answer
        return found

    def delete(self, base: ShardsManifest, given: Any, ignore_missing: bool) -> ShardsManifest:
        """Delete entries, by their ids or string keys."""
        until = self._until()
        payload = ShardedPayload(
            base, lambda method, arguments: self.call(base, method, arguments, until)
        )
        ids = payload.ids_of(given, ignore_missing=ignore_missing)
        found = self.holds(base, ids, until)
        if not found.all() and not ignore_missing:
            raise KeyError(f"id {ids[int(np.argmin(found))]} is not in the database")
        ids = ids[found]
        positions = split_by_shard(ids, base.shards)
        changes = {shard: ShardChange("delete", ids[at]) for shard, at in positions.items()}
        return self.apply(base, changes, base.next_id, until)

    def compact(self, base: ShardsManifest) -> ShardsManifest:
        """Rewrite all live entries in as few segments as possible."""
        changes = {shard: ShardChange("compact") for shard in range(base.shards)}
        return self.apply(base, changes, base.next_id, self._until())

    def apply(
        self,
        base: ShardsManifest,
        changes: Mapping[int, ShardChange],
        next_id: int,
        until: float,
        columns: tuple[Column, ...] | None = None,
    ) -> ShardsManifest:
        """Commit changes of shards, ``until`` a time of the monotonic clock; the new manifest.

        A change that is committed in time succeeds, whether shards publish it in time or later.
        """
        arguments = {shard: (base.pins[shard], change) for shard, change in changes.items()}
        try:
            pins = list(base.pins)
            for shard, pin in self.call(base, "prepare", arguments, until).items():
                pins[shard] = pin
            changed = replace(base, pins=tuple(pins))
            if changed == base:
                return base
            changed = replace(
                changed,
                generation=base.generation + 1,
                next_id=next_id,
                columns=base.columns if columns is None else columns,
            )
            changed.write(self._location.folder)
        except BaseException:
            with suppress(DatabaseError, OSError):
                # The manifest decides: it may have been replaced before the error.
                self._resolve(self._location.read_manifest(), list(changes), until)
            raise
        with suppress(DatabaseError, OSError):
            self._resolve(changed, list(changes), until)
        return changed

    def _resolve(self, manifest: ShardsManifest, shards: list[int], until: float) -> None:
        """Tell the shards, and wait as long as there is time; the next change asks them again."""
        deadline = min(until, time.monotonic() + PUBLISH_SECONDS)
        self._actor_pool.call(
            "resolve", {shard: (manifest.pins[shard],) for shard in shards}, deadline
        )

    def call(
        self,
        base: ShardsManifest,
        method: str,
        arguments: Mapping[int, tuple[Any, ...]],
        until: float,
    ) -> dict[int, Any]:
        """Call a method of some shards; ShardsMissingError unless all of them answer."""
        replies = self._actor_pool.call(method, arguments, until)
        if replies.missing:
            raise ShardsMissingError(replies.missing, base.shards, self._deadline)
        return replies.answers


def _name(ids: Int64Array, keys: list[str] | None, at: int) -> str:
    return f"id {ids[at]}" if keys is None else f"key {keys[at]!r}"


def _change(
    kind: str, ids: Int64Array, rows: Float32Array, table: Any, at: Int64Array, keyed: bool
) -> ShardChange:
    """The change of one shard, whose entries are at positions ``at`` of the payload."""
    if table is None:
        return ShardChange(kind, ids, rows)
    arrow = import_extra("pyarrow", extra=EXTRA)
    part = table.take(arrow.array(at)).combine_chunks()
    if not keyed:
        return ShardChange(kind, ids, rows, part)
    keys, rest = split_keys(part)
    return ShardChange(kind, keys, rows, rest)

"""What an open sharded database has: its actors, its parameters and its entries."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hiernorm._closing import Closing
from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_count
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.fan_out import QueryFanOut
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.payload import ShardedPayload
from hiernorm.distributed.reader import ShardedReader
from hiernorm.distributed.server import ShardSpec
from hiernorm.distributed.writer import ShardedWriter
from hiernorm.payload.answers import EntryPayload, table_of
from hiernorm.searchable_base import SearchableBase

SHARD_LOCK_SECONDS = 60.0
"""How long an actor waits for a dying one that still holds the lock of its shard."""

T = TypeVar("T")


class ShardedState(Closing, SearchableBase):
    """The part of :class:`hiernorm.distributed.ShardedDatabase` that says what it has."""

    def __init__(
        self,
        location: Location,
        ray: Any,
        *,
        local: str | os.PathLike[str] | None,
        threads: int,
        in_flight: int,
        deadline: float,
        change_deadline: float,
        lock_timeout: float,
        actor_options: Mapping[str, Any],
    ) -> None:
        manifest = location.read_manifest()
        settings = manifest.parameters.settings(as_count("threads", threads))
        if location.is_remote and local is None:
            raise ValueError(
                f"{location.name} is not a folder: give local=, for copies on the nodes"
            )
        copies = None if local is None else os.fspath(local)
        specs = [
            ShardSpec(location.name, shard, manifest.shards, copies, threads, SHARD_LOCK_SECONDS)
            for shard in range(manifest.shards)
        ]
        self._location = location
        self._settings = settings
        self._deadline = as_seconds("deadline", deadline)
        self._change_deadline = as_seconds("change_deadline", change_deadline)
        self._lock_timeout = lock_timeout
        self._like = settings.make_core()
        self._actor_pool = ActorPool(ray, specs, as_count("in_flight", in_flight), actor_options)
        self._reader = ShardedReader(
            location, self._actor_pool, QueryFanOut(ray, self._actor_pool, in_flight), settings
        )
        self._writer = ShardedWriter(location, self._actor_pool, self._like, self._change_deadline)
        self._change_lock = threading.Lock()

    def close(self) -> None:
        """End the actors; the database stays as it is."""
        self._actor_pool.close()

    @property
    def path(self) -> str:
        """The folder or URI."""
        return self._location.name

    @property
    def shards(self) -> int:
        """The number of shards."""
        return self._reader.manifest.shards

    @property
    def generation(self) -> int:
        """The number of changes that led to what this reader sees."""
        return self._reader.manifest.generation

    def __len__(self) -> int:
        return self._reader.manifest.entries

    def _payload(self, manifest: ShardsManifest) -> ShardedPayload:
        return self._reader.payload(manifest, self._deadline)

    def _with_payload(self, act: Callable[[EntryPayload], T]) -> T:
        return self._read(lambda manifest: act(self._payload(manifest)))

    def _payload_table(self, ids: Any, columns: Sequence[str] | None) -> Any:
        def table(manifest: ShardsManifest) -> Any:
            payload = self._payload(manifest)
            if ids is None:
                wanted = self._reader.ids(manifest, self._deadline)
            else:
                wanted = payload.ids_of(ids)
            return table_of(payload, wanted, columns)

        return self._read(table)

    def _holds(self, ids: Int64Array) -> BoolArray:
        def look(manifest: ShardsManifest) -> BoolArray:
            return self._writer.holds(manifest, ids, time.monotonic() + self._deadline)

        return self._read(look)

    def __repr__(self) -> str:
        return (
            f"ShardedDatabase({self.path!r}, dim={self.dim}, metric={self.metric!r}, "
            f"shards={self.shards}, entries={len(self):,}, generation={self.generation})"
        )

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return self._read(lambda manifest: self._reader.ids(manifest, self._deadline))

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and live entries; that of an index with the same entries.

        Reads every entry of every shard: hours at large sizes.
        """
        return self._read(self._reader.digest)

    def info(self) -> dict[str, Any]:
        """The parameters of the database and the sizes of its shards, ready for JSON."""
        return self._read(lambda manifest: self._reader.info(manifest, self._deadline))

    def _read(self, act: Callable[[ShardsManifest], T]) -> T:
        return self._reader.read(act, time.monotonic() + self._deadline)


def as_seconds(name: str, seconds: float) -> float:
    """``seconds``, which must be positive."""
    if not seconds > 0:
        raise ValueError(f"{name} must be positive seconds, got {seconds}")
    return float(seconds)

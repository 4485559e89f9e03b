"""What an open sharded database has: its actors, its parameters and its entries."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from hiernorm.array_types import Int64Array
from hiernorm.arrays import as_count, as_ids, is_id
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.fan_out import QueryFanOut
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.payload import ShardedPayload
from hiernorm.distributed.placement import shard_of
from hiernorm.distributed.reader import ShardedReader
from hiernorm.distributed.server import ShardSpec
from hiernorm.distributed.writer import ShardedWriter
from hiernorm.payload.answers import holds_key, keys_of, visible_columns
from hiernorm.settings import Metric

SHARD_LOCK_SECONDS = 60.0
"""How long an actor waits for a dying one that still holds the lock of its shard."""

T = TypeVar("T")
Opened = TypeVar("Opened", bound="ShardedState")


class ShardedState:
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

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the actors; the database stays as it is."""
        self._actor_pool.close()

    @property
    def path(self) -> str:
        """The folder or URI."""
        return self._location.name

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K, as the database was created; None: each segment chooses it from its entries."""
        return self._settings.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

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

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._reader.manifest.parameters.string_keys

    @property
    def keys(self) -> list[str]:
        """The string keys of all entries, in the order of :attr:`ids`."""
        ids = self.ids
        return self._read(lambda manifest: keys_of(self._payload(manifest), ids).tolist())

    @property
    def columns(self) -> dict[str, str]:
        """The payload columns, as :attr:`hiernorm.Database.columns`."""
        return visible_columns(self._payload(self._reader.manifest))

    def _payload(self, manifest: ShardsManifest) -> ShardedPayload:
        return self._reader.payload(manifest, self._deadline)

    def __contains__(self, id: object) -> bool:
        if isinstance(id, str):
            return self._read(lambda manifest: holds_key(self._payload(manifest), id))
        if not is_id(id):
            return False
        wanted = as_ids(id)

        def look(manifest: ShardsManifest) -> bool:
            shard = int(shard_of(wanted, manifest.shards)[0])
            arguments = {shard: (manifest.pins[shard], wanted)}
            return bool(self._reader.call(manifest, "holds", arguments, self._deadline)[shard][0])

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

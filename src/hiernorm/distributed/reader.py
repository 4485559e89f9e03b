"""The reader of a sharded database: searches, look-ups and checks of one generation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.certificate import digest_in_order
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.answers import (
    MissingShards,
    ShardedCertificate,
    ShardedHits,
    merge_best,
)
from hiernorm.distributed.errors import ShardsMissingError, StaleGenerationError
from hiernorm.distributed.fan_out import BatchResult, QueryFanOut, ShardQuery
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.payload import ShardedPayload
from hiernorm.distributed.placement import split_by_shard
from hiernorm.filters import ids_of_array
from hiernorm.hits import RangeHits
from hiernorm.payload import ID
from hiernorm.payload.answers import payload_of_hits
from hiernorm.payload.columns import Column
from hiernorm.payload.conditions import BoundCondition, compile_condition, is_condition
from hiernorm.payload.keys import are_keys
from hiernorm.settings import IndexSettings
from hiernorm.storage.checksums import weakest
from hiernorm.storage.database_state import ENTRIES_AT_A_TIME
from hiernorm.verification import Verification

RETRY_SECONDS = 0.01
"""Pause before the manifest is read again while a writer is about to replace it."""

T = TypeVar("T")


class ShardedReader:
    """Reads the generation of ``manifest`` until :meth:`refresh` replaces it."""

    def __init__(
        self,
        location: Location,
        actor_pool: ActorPool,
        fan_out: QueryFanOut,
        settings: IndexSettings,
    ) -> None:
        self._location = location
        self._actor_pool = actor_pool
        self._fan_out = fan_out
        self._settings = settings
        self.manifest = location.read_manifest()
        self._moving = threading.Lock()

    def refresh(self) -> bool:
        """Read the newest manifest; whether it is another one."""
        with self._moving:
            before = self.manifest
            self.manifest = self._location.read_manifest()
            return self.manifest != before

    def move_on(self, before: ShardsManifest, after: ShardsManifest) -> None:
        """Show a generation that was committed on ``before``, or a newer one already shown."""
        with self._moving:
            if self.manifest in (before, after):
                self.manifest = after
            else:  # another thread has moved on, perhaps further
                self.manifest = self._location.read_manifest()

    def read(self, act: Callable[[ShardsManifest], T], deadline: float) -> T:
        """Call ``act`` with the manifest, and again with the newest where its files are gone.

        ``deadline`` is a time of the monotonic clock.
        """
        while True:
            manifest = self.manifest
            try:
                return act(manifest)
            except StaleGenerationError:
                if time.monotonic() >= deadline:
                    raise
                if self.manifest == manifest and not self.refresh():
                    time.sleep(RETRY_SECONDS)

    def search(
        self, shard_query: ShardQuery, queries: Float32Array, batch: int | None
    ) -> ShardedHits:
        """The k best entries of every query."""
        start = time.perf_counter()
        results, missing = self._fan_out.search(self._with_ids(shard_query), queries, batch)
        ids = np.concatenate([result.ids for result in results])
        scores = np.concatenate([result.scores for result in results])
        seconds = {
            name: sum(result.seconds[name] for result in results) for name in ("shards", "merge")
        }
        seconds["total"] = time.perf_counter() - start
        certificate = self._certificate(shard_query, results, scores[:, -1], missing)
        payload = payload_of_hits(self.payload(shard_query.manifest, shard_query.timeout))
        return ShardedHits(ids, scores, certificate, seconds, self._settings.metric, payload)

    def range(self, shard_query: ShardQuery, queries: Float32Array) -> RangeHits:
        """All entries from the threshold up."""
        results, missing = self._fan_out.range(self._with_ids(shard_query), queries)
        offsets = [np.zeros(1, np.int64)]
        for result in results:
            if result.offsets is not None:
                offsets.append(result.offsets[1:] + offsets[-1][-1])
        kth = np.full(len(queries), shard_query.threshold)
        return RangeHits(
            np.concatenate(offsets),
            np.concatenate([result.ids for result in results]),
            np.concatenate([result.scores for result in results]),
            self._certificate(shard_query, results, kth, missing),
            self._settings.metric,
            payload_of_hits(self.payload(shard_query.manifest, shard_query.timeout)),
        )

    def payload(self, manifest: ShardsManifest, timeout: float) -> ShardedPayload:
        """The payload of a generation."""
        return ShardedPayload(
            manifest, lambda method, arguments: self.call(manifest, method, arguments, timeout)
        )

    def _certificate(
        self,
        shard_query: ShardQuery,
        results: list[BatchResult],
        kth: Float64Array,
        missing: MissingShards | None,
    ) -> ShardedCertificate:
        answered = dict(results[0].entries)
        for shard in () if missing is None else missing.shards:
            answered.pop(shard, None)
        return ShardedCertificate(
            sum(answered.values()),
            np.concatenate([result.work for result in results]),
            kth,
            np.concatenate([result.skipped_bound for result in results]),
            lambda: self.digest(shard_query.manifest),
            missing,
            checked=weakest(result.checked for result in results),
        )

    def _with_ids(self, shard_query: ShardQuery) -> ShardQuery:
        """The query with a mask replaced by ids, which can be sent to their shards."""
        where, manifest = shard_query.where, shard_query.manifest
        if is_condition(where):
            compile_condition(where, [Column(ID, "int64"), *manifest.columns])
            return replace(shard_query, where=BoundCondition(where, manifest.columns))
        if where is None or callable(where) or isinstance(where, BoundCondition):
            return shard_query
        if are_keys(where):
            payload = self.payload(manifest, shard_query.timeout)
            where = payload.ids_of(where, ignore_missing=True)
        wanted = ids_of_array(
            where, manifest.entries, lambda: self.ids(manifest, shard_query.timeout), "database"
        )
        return replace(shard_query, where=wanted)

    def call(
        self,
        manifest: ShardsManifest,
        method: str,
        arguments: Mapping[int, tuple[Any, ...]],
        timeout: float,
    ) -> dict[int, Any]:
        """Call a method of some shards; ShardsMissingError unless all of them answer."""
        replies = self._actor_pool.call(method, arguments, time.monotonic() + timeout)
        if replies.missing:
            raise ShardsMissingError(replies.missing, manifest.shards, timeout)
        return replies.answers

    def call_all(self, manifest: ShardsManifest, method: str, timeout: float) -> dict[int, Any]:
        """Call a method of all shards that has no arguments."""
        arguments = {shard: (pin,) for shard, pin in enumerate(manifest.pins)}
        return self.call(manifest, method, arguments, timeout)

    def ids(self, manifest: ShardsManifest, timeout: float) -> Int64Array:
        """All ids in ascending order."""
        return np.sort(np.concatenate(list(self.call_all(manifest, "ids", timeout).values())))

    def rows(self, manifest: ShardsManifest, ids: Int64Array, timeout: float) -> Float32Array:
        """The rows of ``ids``."""
        positions = split_by_shard(ids, manifest.shards)
        arguments = {shard: (manifest.pins[shard], ids[at]) for shard, at in positions.items()}
        rows = np.empty((len(ids), self._settings.dim), np.float32)
        for shard, part in self.call(manifest, "reconstruct", arguments, timeout).items():
            rows[positions[shard]] = part
        return rows

    def digest(self, manifest: ShardsManifest, timeout: float = 3600.0) -> str:
        """SHA-256 of parameters and entries."""

        def entries() -> Iterator[tuple[Int64Array, Float32Array]]:
            ids = self.ids(manifest, timeout)
            for first in range(0, len(ids), ENTRIES_AT_A_TIME):
                part = ids[first : first + ENTRIES_AT_A_TIME]
                yield part, self.rows(manifest, part, timeout)

        return digest_in_order(self._settings.digested(), self._settings.dim, entries())

    def info(self, manifest: ShardsManifest, timeout: float) -> dict[str, Any]:
        """The parameters of the database and the sizes of its shards."""
        found = self.call_all(manifest, "info", timeout)
        return {
            "path": self._location.name,
            "dim": self._settings.dim,
            "major": self._settings.major,
            "alpha": self._settings.alpha,
            "metric": self._settings.metric,
            "generation": manifest.generation,
            "shards": manifest.shards,
            "entries": manifest.entries,
            "smallest_shard": min(pin.entries for pin in manifest.pins),
            "largest_shard": max(pin.entries for pin in manifest.pins),
            **{
                name: sum(info[name] for info in found.values())
                for name in ("deleted", "segments", "bytes")
            },
        }

    def search_exhaustively(
        self, shard_query: ShardQuery, queries: Float32Array
    ) -> tuple[Int64Array, Float64Array, int]:
        """Ids and scores of the k best, from every row of every shard; and how many rows."""
        k, where = shard_query.k, self._with_ids(shard_query).where
        manifest = shard_query.manifest
        arguments = {shard: (pin, queries, k, where) for shard, pin in enumerate(manifest.pins)}
        parts = self.call(manifest, "search_exhaustively", arguments, shard_query.timeout)
        ids, scores = merge_best([(ids, scores) for ids, scores, _ in parts.values()], k)
        return ids, scores, sum(entries for _, _, entries in parts.values())

    def check(self, manifest: ShardsManifest, timeout: float) -> Verification:
        """Read all files of all shards and list what is damaged."""
        found = self.call_all(manifest, "check", timeout)
        return Verification([f"shard {s}: {line}" for s in sorted(found) for line in found[s]])

"""Query fan-out: queries go to the shards in batches and waves, and the answers are merged.

A wave is a group of shards that search at the same time. The k-th score of the waves before it lets
a shard skip entries early.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.certificate import STEPS
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.answers import MissingShards, merge_best, merge_ranges
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.placement import split_by_shard
from hiernorm.distributed.server import ShardResult
from hiernorm.filters import Where
from hiernorm.payload.conditions import BoundCondition
from hiernorm.storage.checksums import Check, weakest

BATCH = 256
"""Queries in one call of a shard."""
BATCH_BYTES = 1 << 24
"""Bytes of hits that a shard returns in one call: a large k means fewer queries in a batch."""
ONE_WAVE = 4
"""Up to this many shards search in one wave; of more shards, a quarter searches first."""
INLINE_BYTES = 1 << 16
"""Larger batches are put into the object store once instead of being sent to every shard."""


@dataclass(frozen=True)
class ShardQuery:
    """The parameters of a search or range search over all shards.

    Attributes
    ----------
    manifest
        The generation that is searched.
    deadline
        When to stop waiting, by the monotonic clock.
    timeout
        The same in seconds from the start of the call, for error messages.
    """

    manifest: ShardsManifest
    where: Where | None
    deadline: float
    timeout: float
    allow_partial: bool
    k: int = 0
    beta: float | None = None
    threshold: float = 0.0
    wave: int | None = None


@dataclass
class BatchResult:
    """The merged answer of all shards to one batch of queries."""

    ids: Int64Array
    scores: Float64Array
    work: Int64Array
    skipped_bound: Float64Array
    offsets: Int64Array | None = None
    entries: dict[int, int] = field(default_factory=dict)
    checked: Check = "all"
    seconds: dict[str, float] = field(default_factory=lambda: {"shards": 0.0, "merge": 0.0})


class QueryFanOut:
    """Sends queries to all shards of an actor pool and merges their answers."""

    def __init__(self, ray: Any, actor_pool: ActorPool, in_flight: int) -> None:
        self._ray = ray
        self._actor_pool = actor_pool
        self._in_flight = in_flight
        self._first_shard = 0

    def search(
        self, shard_query: ShardQuery, queries: Float32Array, batch: int | None
    ) -> tuple[list[BatchResult], MissingShards | None]:
        """The k best entries of every query, and the shards that did not answer every batch."""
        size = batch or max(1, min(BATCH, BATCH_BYTES // (16 * shard_query.k)))
        return self._run(shard_query, queries, size, self._search)

    def range(
        self, shard_query: ShardQuery, queries: Float32Array
    ) -> tuple[list[BatchResult], MissingShards | None]:
        """All entries from the threshold up, and the shards that did not answer every batch."""
        return self._run(shard_query, queries, BATCH, self._range)

    def _run(
        self, shard_query: ShardQuery, queries: Float32Array, size: int, search_batch: Any
    ) -> tuple[list[BatchResult], MissingShards | None]:
        batches = [queries[first : first + size] for first in range(0, len(queries), size)]
        batches = batches or [queries]
        # Every batch starts at another shard, so that all shards are busy in every wave.
        starts = range(self._first_shard, self._first_shard + len(batches))
        self._first_shard = (self._first_shard + len(batches)) % (1 << 30)
        if len(batches) == 1:
            results = [search_batch(shard_query, batches[0], starts[0])]
        else:
            with ThreadPoolExecutor(min(self._in_flight, len(batches))) as pool:
                futures = [
                    pool.submit(search_batch, shard_query, batch, start)
                    for batch, start in zip(batches, starts, strict=True)
                ]
                try:
                    results = [future.result() for future in futures]
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        answered = set.intersection(*(set(result.entries) for result in results))
        return results, _find_missing(shard_query.manifest, answered)

    def _search(
        self, shard_query: ShardQuery, queries: Float32Array, first_shard: int
    ) -> BatchResult:
        result = _empty_result(len(queries), shard_query.k)
        sent = self._share(queries)
        for wave in plan_waves(shard_query.manifest.shards, shard_query.wave, first_shard):
            known = (result.ids, result.scores) if result.entries else None
            found = self._call_shards(
                shard_query,
                "search",
                {
                    shard: (sent, shard_query.k, known, where, shard_query.beta)
                    for shard, where in _filters(shard_query, wave)
                },
                result,
            )
            start = time.perf_counter()
            parts = [(result.ids, result.scores), *((f.ids, f.scores) for f in found)]
            result.ids, result.scores = merge_best(parts, shard_query.k)
            result.seconds["merge"] += time.perf_counter() - start
        return result

    def _range(
        self, shard_query: ShardQuery, queries: Float32Array, first_shard: int
    ) -> BatchResult:
        result = _empty_result(len(queries), 0)
        sent = self._share(queries)
        arguments = {
            shard: (sent, shard_query.threshold, where)
            for shard, where in _filters(shard_query, list(range(shard_query.manifest.shards)))
        }
        found = self._call_shards(shard_query, "range", arguments, result)
        start = time.perf_counter()
        parts = [(f.offsets, f.ids, f.scores) for f in found if f.offsets is not None]
        result.offsets, result.ids, result.scores = merge_ranges(parts, len(queries))
        result.seconds["merge"] += time.perf_counter() - start
        return result

    def _share(self, queries: Float32Array) -> Any:
        """The queries, or a reference to them in the object store."""
        return self._ray.put(queries) if queries.nbytes > INLINE_BYTES else queries

    def _call_shards(
        self,
        shard_query: ShardQuery,
        method: str,
        arguments: dict[int, tuple[Any, ...]],
        result: BatchResult,
    ) -> list[ShardResult]:
        """Call a method of some shards and add their counts to ``result``."""
        pins = shard_query.manifest.pins
        pinned = {shard: (pins[shard], *given) for shard, given in arguments.items()}
        replies = self._actor_pool.call(method, pinned, shard_query.deadline)
        if replies.missing and not shard_query.allow_partial:
            raise ShardsMissingError(
                replies.missing, shard_query.manifest.shards, shard_query.timeout
            )
        for shard, found in replies.answers.items():
            result.entries[shard] = found.entries
            result.checked = weakest((result.checked, found.checked))
            result.work = result.work + found.work
            result.skipped_bound = np.maximum(result.skipped_bound, found.skipped_bound)
        answers: list[ShardResult] = list(replies.answers.values())
        result.seconds["shards"] += max((found.seconds for found in answers), default=0.0)
        return answers


def plan_waves(shards: int, size: int | None, first_shard: int = 0) -> list[list[int]]:
    """The shards of each wave, in the order of the waves.

    Examples
    --------
    >>> plan_waves(7, 3), plan_waves(3, None)
    ([[0, 1, 2], [3, 4, 5], [6]], [[0, 1, 2]])
    >>> plan_waves(8, None, first_shard=5)
    [[5, 6], [7, 0, 1, 2, 3, 4]]
    """
    order = [(first_shard + i) % shards for i in range(shards)]
    if size is not None:
        return [order[first : first + size] for first in range(0, shards, size)]
    first = shards if shards <= ONE_WAVE else -(-shards // 4)
    return [part for part in (order[:first], order[first:]) if part]


def _filters(shard_query: ShardQuery, wave: list[int]) -> Iterator[tuple[int, Where | None]]:
    """The filter of each shard in a wave; a filter of ids keeps the ids of that shard."""
    chosen = shard_query.where
    if chosen is None or isinstance(chosen, BoundCondition) or callable(chosen):
        for shard in wave:
            yield shard, chosen
        return
    ids = np.asarray(chosen)
    positions = split_by_shard(ids, shard_query.manifest.shards)
    for shard in wave:
        yield shard, ids[positions.get(shard, np.empty(0, np.int64))]


def _empty_result(queries: int, k: int) -> BatchResult:
    return BatchResult(
        np.full((queries, k), -1, np.int64),
        np.full((queries, k), -np.inf),
        np.zeros((queries, len(STEPS)), np.int64),
        np.full(queries, -np.inf),
    )


def _find_missing(manifest: ShardsManifest, answered: set[int]) -> MissingShards | None:
    shards = tuple(sorted(set(range(manifest.shards)) - answered))
    if not shards:
        return None
    return MissingShards(
        shards, manifest.shards, sum(manifest.pins[shard].entries for shard in shards)
    )

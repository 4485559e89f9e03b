"""Batches and waves of queries: what shards have found so far prunes the search of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.certificate import STEPS
from hiernorm.distributed.actor_pool import Crew
from hiernorm.distributed.answers import Missing, merge_best, merge_ranges
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.placement import split_by_shard
from hiernorm.distributed.server import Found
from hiernorm.storage.selection import Where

BATCH = 256
"""Queries that travel together."""
BATCH_BYTES = 1 << 24
"""Of hits that a shard returns at a time: fewer queries travel together if k is large."""
ONE_WAVE = 4
"""Up to so many shards are asked at once; of more, a quarter comes first."""
INLINE_BYTES = 1 << 16
"""Queries beyond this are put into the object store once, not sent to every shard."""


@dataclass(frozen=True)
class Terms:
    """What is asked, beside the queries, and how long to wait for it."""

    manifest: ShardsManifest
    where: Where | None
    until: float
    seconds: float
    allow_partial: bool
    k: int = 0
    beta: float | None = None
    threshold: float = 0.0
    wave: int | None = None


@dataclass
class Outcome:
    """The answer to one batch."""

    ids: Int64Array
    scores: Float64Array
    work: Int64Array
    skipped_bound: Float64Array
    offsets: Int64Array | None = None
    entries: dict[int, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: {"shards": 0.0, "merge": 0.0})


class Asker:
    """Asks the shards of a crew."""

    def __init__(self, ray: Any, crew: Crew, in_flight: int) -> None:
        self._ray = ray
        self._crew = crew
        self._in_flight = in_flight
        self._turn = 0

    def search(
        self, terms: Terms, queries: Float32Array, batch: int | None
    ) -> tuple[list[Outcome], Missing | None]:
        """The k best of every query, batch by batch; and what is missing from one of them."""
        size = batch or max(1, min(BATCH, BATCH_BYTES // (16 * terms.k)))
        return self._run(terms, queries, size, self._search)

    def range(self, terms: Terms, queries: Float32Array) -> tuple[list[Outcome], Missing | None]:
        """All entries from the threshold up, batch by batch; and what is missing."""
        return self._run(terms, queries, BATCH, self._range)

    def _run(
        self, terms: Terms, queries: Float32Array, size: int, ask: Any
    ) -> tuple[list[Outcome], Missing | None]:
        batches = [queries[first : first + size] for first in range(0, len(queries), size)]
        batches = batches or [queries]
        # Later batches begin elsewhere, so that all shards have work while waves go round.
        turns = range(self._turn, self._turn + len(batches))
        self._turn = (self._turn + len(batches)) % (1 << 30)
        if len(batches) == 1:
            outcomes = [ask(terms, batches[0], turns[0])]
        else:
            with ThreadPoolExecutor(min(self._in_flight, len(batches))) as pool:
                futures = [
                    pool.submit(ask, terms, part, turn)
                    for part, turn in zip(batches, turns, strict=True)
                ]
                try:
                    outcomes = [future.result() for future in futures]
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        answered = set.intersection(*(set(outcome.entries) for outcome in outcomes))
        return outcomes, _missing(terms.manifest, answered)

    def _search(self, terms: Terms, queries: Float32Array, turn: int) -> Outcome:
        outcome = _nothing(len(queries), terms.k)
        sent = self._sent(queries)
        for wave in waves(terms.manifest.shards, terms.wave, turn):
            known = (outcome.ids, outcome.scores) if outcome.entries else None
            found = self._ask(
                terms,
                "search",
                {
                    shard: (sent, terms.k, known, where, terms.beta)
                    for shard, where in _filters(terms, wave)
                },
                outcome,
            )
            start = time.perf_counter()
            parts = [(outcome.ids, outcome.scores), *((f.ids, f.scores) for f in found)]
            outcome.ids, outcome.scores = merge_best(parts, terms.k)
            outcome.seconds["merge"] += time.perf_counter() - start
        return outcome

    def _range(self, terms: Terms, queries: Float32Array, turn: int) -> Outcome:
        outcome = _nothing(len(queries), 0)
        sent = self._sent(queries)
        asked = {
            shard: (sent, terms.threshold, where)
            for shard, where in _filters(terms, list(range(terms.manifest.shards)))
        }
        found = self._ask(terms, "range", asked, outcome)
        start = time.perf_counter()
        parts = [(f.offsets, f.ids, f.scores) for f in found if f.offsets is not None]
        outcome.offsets, outcome.ids, outcome.scores = merge_ranges(parts, len(queries))
        outcome.seconds["merge"] += time.perf_counter() - start
        return outcome

    def _sent(self, queries: Float32Array) -> Any:
        return self._ray.put(queries) if queries.nbytes > INLINE_BYTES else queries

    def _ask(
        self, terms: Terms, method: str, asked: dict[int, tuple[Any, ...]], outcome: Outcome
    ) -> list[Found]:
        pins = terms.manifest.pins
        arguments = {shard: (pins[shard], *given) for shard, given in asked.items()}
        replies = self._crew.call(method, arguments, terms.until)
        if replies.missing and not terms.allow_partial:
            raise ShardsMissingError(replies.missing, terms.manifest.shards, terms.seconds)
        for shard, found in replies.answers.items():
            outcome.entries[shard] = found.entries
            outcome.work = outcome.work + found.work
            outcome.skipped_bound = np.maximum(outcome.skipped_bound, found.skipped_bound)
        answers: list[Found] = list(replies.answers.values())
        outcome.seconds["shards"] += max((found.seconds for found in answers), default=0.0)
        return answers


def waves(shards: int, size: int | None, turn: int = 0) -> list[list[int]]:
    """Which shards are asked together, one group after the other.

    Examples
    --------
    >>> waves(7, 3), waves(8, None, turn=5), waves(3, None)
    ([[0, 1, 2], [3, 4, 5], [6]], [[5, 6], [7, 0, 1, 2, 3, 4]], [[0, 1, 2]])
    """
    order = [(turn + i) % shards for i in range(shards)]
    if size is not None:
        return [order[first : first + size] for first in range(0, shards, size)]
    first = shards if shards <= ONE_WAVE else -(-shards // 4)
    return [part for part in (order[:first], order[first:]) if part]


def _filters(terms: Terms, wave: list[int]) -> Iterator[tuple[int, Where | None]]:
    """What each shard of a wave is to search among: of ids, its own."""
    if terms.where is None or callable(terms.where):
        for shard in wave:
            yield shard, terms.where
        return
    ids = np.asarray(terms.where)
    places = split_by_shard(ids, terms.manifest.shards)
    for shard in wave:
        yield shard, ids[places.get(shard, np.empty(0, np.int64))]


def _nothing(queries: int, k: int) -> Outcome:
    return Outcome(
        np.full((queries, k), -1, np.int64),
        np.full((queries, k), -np.inf),
        np.zeros((queries, len(STEPS)), np.int64),
        np.full(queries, -np.inf),
    )


def _missing(manifest: ShardsManifest, answered: set[int]) -> Missing | None:
    shards = tuple(sorted(set(range(manifest.shards)) - answered))
    if not shards:
        return None
    return Missing(shards, manifest.shards, sum(manifest.pins[shard].entries for shard in shards))

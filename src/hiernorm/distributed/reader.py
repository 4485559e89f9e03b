"""Reading one generation of all shards: searches, look-ups, checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_ids
from hiernorm.certificate import digest_in_order
from hiernorm.distributed.actor_pool import Crew
from hiernorm.distributed.answers import Missing, ShardedCertificate, ShardedHits
from hiernorm.distributed.errors import MovedOnError, ShardsMissingError
from hiernorm.distributed.fan_out import Asker, Outcome, Terms
from hiernorm.distributed.location import Place
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.placement import split_by_shard
from hiernorm.hits import RangeHits
from hiernorm.settings import Settings
from hiernorm.storage.database import ENTRIES_AT_A_TIME
from hiernorm.storage.selection import Selection

MOVED_SECONDS = 0.01
"""Before the manifest is read again that a writer is about to replace."""

T = TypeVar("T")


class Reader:
    """What a database sees: the generation of ``manifest``, until it is refreshed."""

    def __init__(self, place: Place, crew: Crew, asker: Asker, settings: Settings) -> None:
        self._place = place
        self._crew = crew
        self._asker = asker
        self._settings = settings
        self.manifest = place.read_shards()

    def refresh(self) -> bool:
        """Move on to the newest generation; whether there was a newer one."""
        before = self.manifest
        self.manifest = self._place.read_shards()
        return self.manifest != before

    def read(self, act: Callable[[ShardsManifest], T], until: float) -> T:
        """Read one generation of all shards; where an actor finds newer files only, the newest."""
        while True:
            view = self.manifest
            try:
                return act(view)
            except MovedOnError:
                if time.monotonic() >= until:
                    raise
                if self.manifest == view and not self.refresh():
                    time.sleep(MOVED_SECONDS)

    def search(self, terms: Terms, queries: Float32Array, batch: int | None) -> ShardedHits:
        """The k best of every query."""
        start = time.perf_counter()
        outcomes, missing = self._asker.search(self._with_ids(terms), queries, batch)
        ids = np.concatenate([outcome.ids for outcome in outcomes])
        scores = np.concatenate([outcome.scores for outcome in outcomes])
        seconds = {
            name: sum(outcome.seconds[name] for outcome in outcomes) for name in ("shards", "merge")
        }
        seconds["total"] = time.perf_counter() - start
        certificate = self._certificate(terms, outcomes, scores[:, -1], missing)
        return ShardedHits(ids, scores, certificate, seconds)

    def range(self, terms: Terms, queries: Float32Array) -> RangeHits:
        """All entries from the threshold up."""
        outcomes, missing = self._asker.range(self._with_ids(terms), queries)
        offsets = [np.zeros(1, np.int64)]
        for outcome in outcomes:
            if outcome.offsets is not None:
                offsets.append(outcome.offsets[1:] + offsets[-1][-1])
        kth = np.full(len(queries), terms.threshold)
        return RangeHits(
            np.concatenate(offsets),
            np.concatenate([outcome.ids for outcome in outcomes]),
            np.concatenate([outcome.scores for outcome in outcomes]),
            self._certificate(terms, outcomes, kth, missing),
        )

    def _certificate(
        self, terms: Terms, outcomes: list[Outcome], kth: Float64Array, missing: Missing | None
    ) -> ShardedCertificate:
        answered = dict(outcomes[0].entries)
        for shard in () if missing is None else missing.shards:
            answered.pop(shard, None)
        return ShardedCertificate(
            sum(answered.values()),
            np.concatenate([outcome.work for outcome in outcomes]),
            kth,
            np.concatenate([outcome.skipped_bound for outcome in outcomes]),
            lambda: self.digest(terms.manifest),
            missing,
        )

    def _with_ids(self, terms: Terms) -> Terms:
        """The terms with a mask turned into ids, which can be sent to their shards."""
        where, view = terms.where, terms.manifest
        if where is None or callable(where):
            return terms
        if isinstance(where, Selection):
            raise TypeError("a Selection belongs to one Database: give ids, a mask or a function")
        values = np.asarray(where)
        if values.dtype != np.bool_:
            return replace(terms, where=as_ids(values))
        if values.shape != (view.entries,):
            raise ValueError(
                f"where has shape {values.shape}, a mask over the ids of this database "
                f"has ({view.entries},)"
            )
        return replace(terms, where=self.ids(view, terms.seconds)[values])

    def call(
        self,
        view: ShardsManifest,
        method: str,
        asked: Mapping[int, tuple[Any, ...]],
        seconds: float,
    ) -> dict[int, Any]:
        """Call a method of shards that must all answer."""
        replies = self._crew.call(method, asked, time.monotonic() + seconds)
        if replies.missing:
            raise ShardsMissingError(replies.missing, view.shards, seconds)
        return replies.answers

    def call_all(self, view: ShardsManifest, method: str, seconds: float) -> dict[int, Any]:
        """Call a method without arguments of all shards."""
        return self.call(view, method, {s: (pin,) for s, pin in enumerate(view.pins)}, seconds)

    def ids(self, view: ShardsManifest, seconds: float) -> Int64Array:
        """All ids in ascending order."""
        return np.sort(np.concatenate(list(self.call_all(view, "ids", seconds).values())))

    def rows(self, view: ShardsManifest, ids: Int64Array, seconds: float) -> Float32Array:
        """The rows of ``ids``."""
        places = split_by_shard(ids, view.shards)
        asked = {shard: (view.pins[shard], ids[at]) for shard, at in places.items()}
        rows = np.empty((len(ids), self._settings.dim), np.float32)
        for shard, part in self.call(view, "reconstruct", asked, seconds).items():
            rows[places[shard]] = part
        return rows

    def digest(self, view: ShardsManifest, seconds: float = 3600.0) -> str:
        """SHA-256 of parameters and entries."""

        def entries() -> Iterator[tuple[Int64Array, Float32Array]]:
            ids = self.ids(view, seconds)
            for first in range(0, len(ids), ENTRIES_AT_A_TIME):
                part = ids[first : first + ENTRIES_AT_A_TIME]
                yield part, self.rows(view, part, seconds)

        return digest_in_order(self._settings.digested(), self._settings.dim, entries())

"""The shard server, which runs in an actor: it searches, changes and checks one shard."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array
from hiernorm.certificate import STEPS, Certificate, no_stats
from hiernorm.distributed.errors import StaleGenerationError
from hiernorm.distributed.location import Location, copy_shard
from hiernorm.distributed.manifest import Pin, shard_name
from hiernorm.distributed.placement import shard_of
from hiernorm.distributed.shard import Shard
from hiernorm.distributed.staging import read_parts
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.storage.checksums import Check, as_check
from hiernorm.storage.errors import DamagedError

OPEN_GENERATIONS = 2
"""Generations that stay open: when a change arrives, queries of the one before may still come."""

T = TypeVar("T")


@dataclass(frozen=True)
class ShardSpec:
    """Which shard to serve, and how to open it."""

    location: str
    shard: int
    shards: int
    local: str | None
    threads: int
    lock_timeout: float


@dataclass(frozen=True)
class ShardResult:
    """The answer of one shard to a batch of queries, and the seconds that the search took."""

    ids: Int64Array
    scores: Float64Array
    work: Int64Array
    skipped_bound: Float64Array
    entries: int
    seconds: float
    checked: Check
    offsets: Int64Array | None = None


@dataclass(frozen=True)
class ShardChange:
    """A change of one shard, of a ``kind``: ``insert``, ``upsert``, ``delete`` or ``compact``.

    Entries come as arrays, or as ``names`` of part files in ``folder``.
    """

    kind: str
    ids: Int64Array | list[str] | None = None
    rows: Float32Array | None = None
    payload: Any = None
    folder: str = ""
    names: tuple[str, ...] = ()


class ShardServer:
    """Serves one shard to callers that name the generation they want.

    It opens files with the first call: a disk error is then an answer, not a dead actor, and a
    restarted actor needs no further set-up.
    """

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._location = Location(spec.location)
        self._name = shard_name(spec.shard)
        self._open: OrderedDict[str, Shard] = OrderedDict()
        self._turn = threading.Lock()

    # Reading.

    def search(
        self,
        pin: Pin,
        queries: Float32Array,
        k: int,
        known: tuple[Int64Array, Float64Array] | None,
        where: Where | None,
        beta: float | None,
    ) -> ShardResult:
        """The k best entries of each query, of this shard and of those ``known`` already."""
        start = time.perf_counter()
        hits = self._read(
            pin,
            lambda shard: shard.search(
                queries,
                k,
                where=where,
                beta=beta,
                threads=self._spec.threads,
                _known=None if known is None else _as_hits(*known, shard.metric),
            ),
        )
        return _as_result(hits, hits.certificate, start)

    def range(
        self, pin: Pin, queries: Float32Array, threshold: float, where: Where | None
    ) -> ShardResult:
        """Every entry of this shard with score >= threshold."""
        start = time.perf_counter()
        threads = self._spec.threads
        hits = self._read(
            pin, lambda shard: shard.range(queries, threshold, where=where, threads=threads)
        )
        return _as_result(hits, hits.certificate, start, hits.offsets)

    def ids(self, pin: Pin) -> Int64Array:
        """All ids in ascending order."""
        return self._read(pin, lambda shard: shard.ids)

    def holds(self, pin: Pin, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are in the shard."""
        return self._read(pin, lambda shard: shard.holds(ids))

    def ids_of(self, pin: Pin, keys: list[str]) -> Int64Array:
        """The ids of string keys; -1 for those that no entry has."""
        return self._read(pin, lambda shard: shard.ids_of(keys))

    def payload(self, pin: Pin, ids: Int64Array, names: list[str]) -> Any:
        """Those of the columns that the shard has, of ``ids``."""

        def table(shard: Shard) -> Any:
            there = shard.column_names
            return shard.payload(ids, [name for name in names if name in there])

        return self._read(pin, table)

    def reconstruct(self, pin: Pin, ids: Int64Array) -> Float32Array:
        """The rows of ``ids``."""
        return self._read(pin, lambda shard: shard.reconstruct(ids))

    def info(self, pin: Pin) -> dict[str, Any]:
        """The parameters and sizes of the shard, and the process that serves it."""
        return {**self._read(pin, lambda shard: shard.info()), "process": os.getpid()}

    def search_exhaustively(
        self, pin: Pin, queries: Float32Array, k: int, where: Where | None
    ) -> tuple[Int64Array, Float64Array, int]:
        """The k best entries of each query, from every row, and how many rows there were."""
        return self._read(pin, lambda shard: shard.search_exhaustively(queries, k, where))

    def check(self, pin: Pin) -> list[str]:
        """Read all files; what is damaged, and ids that belong to another shard.

        Where the shard is a copy, its original is read, too.
        """
        shard = self._at(pin)
        found = list(shard.check().differences)
        if self._spec.local is not None and not self._location.is_remote:
            found += self._writable().at(pin).check().differences
        spec = self._spec
        strays = shard.ids[shard_of(shard.ids, spec.shards) != spec.shard]
        if len(strays):
            found.append(f"{shard.path}: id {strays[0]} belongs to another shard")
        return found

    # Changing: see `shard`.

    def prepare(self, pin: Pin, change: ShardChange) -> Pin:
        """Write the generation that a change of ``pin`` leads to."""
        with self._turn:
            shard = self._writable().resolve(pin)
            if change.kind == "delete":
                shard.delete(change.ids if change.ids is not None else [], ignore_missing=True)
            elif change.kind == "compact":
                shard.compact()
            else:
                source: Any = change.rows
                if change.names:
                    source = read_parts(Path(change.folder), list(change.names), shard.string_keys)
                insert = shard.upsert if change.kind == "upsert" else shard.add
                insert(source, change.ids, payload=change.payload)
            self._keep_if_read(shard)
            return shard.pin

    def resolve(self, pin: Pin) -> None:
        """Publish the prepared generation if it is ``pin``, else remove it."""
        with self._turn:
            self._keep_if_read(self._writable().resolve(pin))

    # Generations.

    def _read(self, pin: Pin, act: Callable[[Shard], T]) -> T:
        """Read a generation; a copy on this machine that turns out damaged is made again, once."""
        try:
            return act(self._at(pin))
        except DamagedError:
            if self._spec.local is None:
                raise
        with self._turn:
            self._open.clear()
            copy_shard(
                self._location, self._name, pin.sha256, Path(self._spec.local), read_whole=True
            )
        return act(self._at(pin))

    def _at(self, pin: Pin) -> Shard:
        with self._turn:
            shard = self._open.get(pin.sha256)
            if shard is None:
                shard = _retry_once(StaleGenerationError, lambda: self._shard(pin).at(pin))
                self._keep(shard)
            return shard

    def _keep(self, shard: Shard) -> None:
        self._open[shard.pin.sha256] = shard
        self._open.move_to_end(shard.pin.sha256)
        while len(self._open) > OPEN_GENERATIONS:
            self._open.popitem(last=False)

    def _keep_if_read(self, shard: Shard) -> None:
        if self._spec.local is None:  # else it is the copy that is read
            self._keep(shard)

    def _shard(self, pin: Pin) -> Shard:
        """The shard at any generation, if possible one that is open already."""
        local = self._spec.local
        if local is not None:
            folder = copy_shard(self._location, self._name, pin.sha256, Path(local))
        elif self._location.is_remote:
            raise ValueError(
                f"{self._location.name} is not a folder: open it with local=, for copies"
            )
        else:
            folder = self._location.folder / self._name
        for shard in self._open.values():
            if shard.path == folder:
                return shard
        return Shard(folder, self._spec.threads, self._spec.lock_timeout)

    def _writable(self) -> Shard:
        folder = self._location.folder / self._name
        for shard in self._open.values():
            if shard.path == folder:
                return shard
        return Shard(folder, self._spec.threads, self._spec.lock_timeout)


def _retry_once(error: type[Exception], act: Callable[[], T]) -> T:
    """Try twice: a copy may have moved to another generation before it was opened."""
    try:
        return act()
    except error:
        return act()


def _as_result(
    hits: Hits | RangeHits, proof: Certificate, start: float, offsets: Int64Array | None = None
) -> ShardResult:
    work = np.stack([proof.work[step] for step in STEPS], axis=1)
    return ShardResult(
        hits.ids,
        hits.scores,
        work,
        proof.skipped_bound,
        proof.entries,
        time.perf_counter() - start,
        as_check(proof.checked),
        offsets,
    )


def _as_hits(ids: Int64Array, scores: Float64Array, metric: str) -> Hits:
    return Hits(ids, scores, no_stats(len(ids)), 0, lambda: "", metric)

"""A shard: a database at the generation that the manifest of the sharded database names.

A change of many shards is a two-phase commit. Every shard *prepares* its next generation: it is
written, but not yet published. Then the manifest of the sharded database is replaced, which commits
the change. A shard *resolves* afterwards: it publishes what it prepared if the manifest names it,
else removes it.
"""

from __future__ import annotations

from pathlib import Path

from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_count
from hiernorm.distributed.errors import StaleGenerationError
from hiernorm.distributed.manifest import Pin, pin_of
from hiernorm.filters import Where
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DamagedError, NotADatabaseError
from hiernorm.storage.integrity import find_damage
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import MANIFEST, PREPARED, Manifest, read_manifest
from hiernorm.storage.search import search_exhaustively
from hiernorm.storage.state import State, map_state
from hiernorm.storage.transaction import Transaction, remove_leftovers
from hiernorm.storage.writer import DatabaseWriter
from hiernorm.verification import Verification

ATTEMPTS = 3
"""Attempts to read two manifests while a writer renames one to the other."""


class Shard(Database):
    """A database whose changes are prepared first, and published when all shards have changed."""

    def __init__(self, path: Path, threads: int | None, lock_timeout: float) -> None:
        super().__init__(path, threads, lock_timeout)
        self._writer = DatabaseWriter(path, lock_timeout, Transaction.prepare)

    def _hit_count(self, k: int, queries: int, entries: int) -> int:
        return as_count("k", k)  # the whole has more entries

    @property
    def pin(self) -> Pin:
        """The generation that this object sees."""
        return pin_of(self._state.manifest)

    def at(self, pin: Pin) -> Shard:
        """The shard at another generation; files of both generations are mapped once.

        Raises
        ------
        MovedOnError
            If only newer generations exist.
        """
        for _ in range(ATTEMPTS):
            manifest = self._find(pin)
            if manifest is None:
                continue
            try:
                state = map_state(self._path, manifest, self._like, self._state)
            except FileNotFoundError:
                continue
            return self._with(state)
        raise self._not_there(pin)

    def _with(self, state: State) -> Shard:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        twin._opened = state
        twin._digests = {}
        return twin

    def _find(self, pin: Pin) -> Manifest | None:
        for name in (MANIFEST, PREPARED):
            try:
                manifest = read_manifest(self._path, name)
            except NotADatabaseError:
                continue
            if manifest.digest == pin.sha256:
                return manifest
        return None

    def _not_there(self, pin: Pin) -> StaleGenerationError | DamagedError:
        published = read_manifest(self._path).generation
        if published > pin.generation:
            return StaleGenerationError(
                f"{self._path} is at generation {published}, not {pin.generation}"
            )
        return DamagedError(
            f"{self._path} has not the generation {pin.generation} that the manifest of the whole "
            "names: restore it from a copy"
        )

    def resolve(self, pin: Pin) -> Shard:
        """Publish the prepared generation if it is ``pin``, else remove it; the shard at ``pin``.

        Raises
        ------
        DamagedError
            If the shard has no such generation, or was changed by other means.
        """
        with WriterLock(self._path, self._lock_timeout):
            manifest = self._find(pin)
            published = read_manifest(self._path)
            if manifest is None:
                raise DamagedError(
                    f"{self._path} is at generation {published.generation}, the manifest of the "
                    f"whole names {pin.generation}: restore it from a copy"
                )
            state = map_state(self._path, manifest, self._like, self._state)
            if manifest != published:
                manifest.write(self._path)
            remove_leftovers(self._path, state)
        return self._with(state)

    def check(self) -> Verification:
        """Read all files of this generation."""
        found = list(find_damage(self._path, self._like, self._state.manifest))
        if found and read_manifest(self._path).generation > self.generation:
            raise self._not_there(self.pin)  # a writer removed its files meanwhile
        return Verification(found)

    def holds(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are in the shard."""
        return self._state.holds(ids)

    def ids_of(self, keys: list[str]) -> Int64Array:
        """The ids of string keys; -1 for those that no entry has."""
        return self._payload.ids_of(keys, ignore_missing=True)

    @property
    def column_names(self) -> set[str]:
        """The names of all columns, with that of the string keys."""
        return {column.name for column in self._payload.columns}

    def search_exhaustively(
        self, queries: Float32Array, k: int, where: Where | None
    ) -> tuple[Int64Array, Float64Array, int]:
        """Ids and scores of the k best, from every row; and how many rows."""
        threads = self._thread_count(None)
        return search_exhaustively(self._state, queries, k, where=where, threads=threads)

"""What an open database has: its files, its parameters, its entries and their payload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hiernorm._closing import Closing
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.certificate import digest_in_order
from hiernorm.payload.answers import EntryPayload, table_of
from hiernorm.searchable_base import SearchableBase
from hiernorm.storage.checksums import Check, as_check
from hiernorm.storage.payload import StatePayload
from hiernorm.storage.state import State, open_state
from hiernorm.storage.writer import DatabaseWriter
from hiernorm.threads import thread_count

ENTRIES_AT_A_TIME = 4096

T = TypeVar("T")


class DatabaseState(Closing, SearchableBase):
    """The part of :class:`hiernorm.Database` that says what it has."""

    def __init__(
        self,
        path: Path,
        threads: int | None,
        lock_timeout: float,
        check: Check = "touched",
    ) -> None:
        thread_count(threads)
        self._check = as_check(check)
        self._path = path
        self._lock_timeout = lock_timeout
        self._writer = DatabaseWriter(path, lock_timeout)
        self._settings = self._writer.settings(threads)
        self._like = self._writer.like
        self._opened: State | None = open_state(path, self._like, check=check)
        self._digests: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled database is its path: another process opens the newest generation."""
        if self._opened is None:
            raise ValueError(f"the database {self._path} was closed: it cannot be pickled")
        return type(self), (self._path, self._settings.threads, self._lock_timeout, self._check)

    def close(self) -> None:
        """Let go of the mapped files; the object can no longer be used."""
        self._opened = None

    @property
    def _state(self) -> State:
        if self._opened is None:
            raise ValueError(f"the database {self._path} was closed: open it again")
        return self._opened

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def generation(self) -> int:
        """The number of changes that led to what this reader sees."""
        return self._state.manifest.generation

    @property
    def identity(self) -> str | None:
        """32 hexadecimal digits, drawn when the database was made; changes and copies keep them.

        None for a database of an earlier version, until its next change. What belongs to a database
        can name it by its identity, wherever its folder is.
        """
        return self._state.manifest.identity

    @property
    def next_id(self) -> int:
        """The first id that :meth:`add` gives by default: larger than every id so far."""
        return self._state.manifest.next_id

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return self._state.ids

    @property
    def _payload(self) -> StatePayload:
        return StatePayload(self._state)

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and live entries; that of an index with the same entries.

        Payload is not in it: :meth:`check` compares that with what was written.
        """
        return self._digest_of(self._state)

    def _digest_of(self, state: State) -> str:
        # Not by generation: a database that was restored may have the same number again.
        generation = state.manifest.digest
        known = self._digests.get(generation)
        if known is None:
            known = digest_in_order(self._settings.digested(), self.dim, entries_of(state))
            self._digests = {generation: known}
        return known

    def __len__(self) -> int:
        return len(self._state)

    def _holds(self, ids: Int64Array) -> BoolArray:
        return self._state.holds(ids)

    def _with_payload(self, act: Callable[[EntryPayload], T]) -> T:
        return act(self._payload)

    def _payload_table(self, ids: Any, columns: Sequence[str] | None) -> Any:
        payload = self._payload
        wanted = self.ids if ids is None else payload.ids_of(ids)
        return table_of(payload, wanted, columns)

    def __repr__(self) -> str:
        if self._opened is None:
            return f"Database({str(self._path)!r}, closed)"
        kind = "plain" if self.alpha is None else f"major={self.major}, alpha={self.alpha}"
        return (
            f"Database({str(self._path)!r}, dim={self.dim}, {kind}, metric={self.metric!r}, "
            f"entries={len(self):,}, generation={self.generation})"
        )

    def info(self) -> dict[str, Any]:
        """The parameters and sizes of the database, and its payload if any, ready for JSON."""
        state = self._state
        manifest = state.manifest
        records = [file for record in manifest.segments for file in record.files()]
        return {
            "path": str(self._path),
            "dim": self.dim,
            "major": self.major,
            "alpha": self.alpha,
            "metric": self.metric,
            **(
                {"string_keys": self.string_keys, "columns": self.columns}
                if manifest.columns
                else {}
            ),
            "generation": manifest.generation,
            "entries": len(state),
            "deleted": sum(record.entries - record.live for record in manifest.segments),
            "segments": len(manifest.segments),
            "bytes": sum(record.bytes for record in records),
        }


def entries_of(state: State) -> Iterator[tuple[Int64Array, Float32Array]]:
    """Ids and rows of all entries in ascending order of id, a few thousand at a time."""
    for first in range(0, len(state), ENTRIES_AT_A_TIME):
        ids = state.ids[first : first + ENTRIES_AT_A_TIME]
        yield ids, state.rows_of(ids)

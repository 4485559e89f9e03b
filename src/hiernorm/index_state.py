"""What an index has: parameters, entries and counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_count
from hiernorm.certificate import digest
from hiernorm.filters import Where, call_filter, ids_of_array
from hiernorm.index_file import SavedFile
from hiernorm.payload.answers import EntryPayload, table_of
from hiernorm.payload.conditions import is_condition
from hiernorm.payload.keys import are_keys
from hiernorm.payload.memory import MemoryPayload
from hiernorm.searchable_base import SearchableBase
from hiernorm.settings import Engine, IndexSettings
from hiernorm.storage.errors import DamagedError
from hiernorm.threads import thread_count

T = TypeVar("T")


class IndexState(SearchableBase):
    """The part of :class:`hiernorm.Index` that says what it has."""

    _settings: IndexSettings
    _payload: MemoryPayload

    def _prepare(self) -> None:
        """Set up the members that are neither parameters nor pickled."""
        self._core = self._settings.make_core()
        self._threads = thread_count(self._settings.threads)
        self._fitted_on = 0
        self._next_id = 0
        self._removals = 0  # changes that removed entries
        self._write_lock = threading.RLock()
        self._digests: dict[tuple[int, int], str] = {}
        self._file: SavedFile | None = None  # that a loaded index maps

    @property
    def major(self) -> int | None:
        """K; None while it is still to be chosen from the data."""
        encoding = self._core.encoding()
        return self._settings.major if encoding is None else encoding.major

    @property
    def engine(self) -> Engine:
        """``"cascade"``, ``"paper"``, ``"flat"`` or ``"exhaustive"``."""
        return self._settings.engine

    @property
    def nbytes(self) -> int:
        """Memory held by entries, codes and tables, in bytes."""
        return self._core.nbytes

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return np.sort(self._core.ids())

    def __len__(self) -> int:
        return len(self._core)

    def _holds(self, ids: Int64Array) -> BoolArray:
        return self._core.find(ids)

    def _with_payload(self, act: Callable[[EntryPayload], T]) -> T:
        return act(self._payload)

    def _payload_table(self, ids: Any, columns: Sequence[str] | None) -> Any:
        wanted = self.ids if ids is None else self._payload.ids_of(ids)
        found = self._core.find(wanted)
        if not found.all():
            raise KeyError(f"id {wanted[int(np.argmin(found))]} is not in the index")
        return table_of(self._payload, wanted, columns)

    def __repr__(self) -> str:
        kind = "plain" if self.alpha is None else f"alpha={self.alpha}"
        major = "" if self.major is None else f"major={self.major}, "
        return (
            f"Index(dim={self.dim}, {major}{kind}, metric={self.metric!r}, "
            f"engine={self.engine!r}, entries={len(self):,}, {self.nbytes / 2**20:.1f} MiB)"
        )

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and entries, independent of the order of insertion."""
        with self._write_lock:
            return self._digest(self._removals, len(self))

    def _digest(self, removals: int, entries: int) -> str:
        """The digest of the first entries; empty if some were removed since."""
        with self._write_lock:
            if removals != self._removals:
                return ""
            if (removals, entries) not in self._digests:
                ids, rows = self._entries(entries)
                text = digest(self._settings.digested(), ids, rows)
                self._digests = {(removals, entries): text}
            return self._digests[removals, entries]

    def _entries(self, count: int | None = None) -> tuple[Int64Array, Float32Array]:
        """Ids and rows of the first ``count`` entries in order of insertion."""
        core = self._core
        try:
            return core.entries(0, len(core) if count is None else count)
        except _core.DamagedBlockError:
            raise self._damage() from None

    def _damage(self) -> DamagedError:
        """The error for a block of the mapped file that is not what was written."""
        path = None if self._file is None else self._file.path
        return DamagedError(f"{path} is not what was written: restore it, or save the index again")

    def _checked(self) -> str:
        """What of a mapped file is compared with its checksums; empty without a file."""
        return "" if self._file is None or not self._core.attached else self._file.checked

    def _ids_of(self, where: Where | None) -> Int64Array | None:
        """The ids to which ``where`` limits a search; None without a limit."""
        if where is None:
            return None
        if is_condition(where):
            return self._payload.find(where, self._core.ids())
        if callable(where):
            ids = self._core.ids()
            return ids[call_filter(where, ids)]
        if are_keys(where):
            return self._payload.ids_of(where, ignore_missing=True)
        return ids_of_array(where, len(self), lambda: self.ids, "index")

    def _thread_count(self, threads: int | None) -> int:
        return self._threads if threads is None else as_count("threads", threads)

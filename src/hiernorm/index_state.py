"""What an index has: parameters, entries and counts."""

from __future__ import annotations

import threading

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_ids, is_id
from hiernorm.certificate import digest
from hiernorm.index_file import SavedFile
from hiernorm.payload.answers import holds_key, keys_of, visible_columns
from hiernorm.payload.memory import MemoryPayload
from hiernorm.settings import Engine, IndexSettings, Metric
from hiernorm.storage.errors import DamagedError
from hiernorm.threads import thread_count


class IndexState:
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
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K; None while it is still to be chosen from the data."""
        encoding = self._core.encoding()
        return self._settings.major if encoding is None else encoding.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

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

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._payload.string_keys

    @property
    def keys(self) -> list[str]:
        """The string keys of all entries, in the order of :attr:`ids`."""
        keys: list[str] = keys_of(self._payload, self.ids).tolist()
        return keys

    @property
    def columns(self) -> dict[str, str]:
        """The payload columns, as :attr:`hiernorm.Database.columns`."""
        return visible_columns(self._payload)

    def __contains__(self, id: object) -> bool:
        if isinstance(id, str):
            return holds_key(self._payload, id)
        return is_id(id) and bool(self._core.find(as_ids(id))[0])

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

"""A buffer of entries for a segment that spills to a file when it outgrows memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from hiernorm import _files
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import SPILL_FILE

MEMORY_BYTES = 1 << 26
"""Bytes of rows that are kept in memory."""


class SpillBuffer:
    """Collects entries and gives all of them as two arrays; removes its file on exit.

    Its file belongs to the process that holds ``lock``: a forked child neither writes to it nor
    removes it.
    """

    def __init__(self, folder: Path, dim: int, lock: WriterLock) -> None:
        self._folder = folder
        self._lock = lock
        self._dim = dim
        self._ids: list[Int64Array] = []
        self._rows: list[Float32Array] = []
        self._path: Path | None = None
        self._descriptor = -1
        self._spilled = 0
        self._in_memory = 0

    def __enter__(self) -> SpillBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove_file()

    def __len__(self) -> int:
        return self._spilled + self._in_memory

    def append(self, ids: Int64Array, rows: Float32Array) -> None:
        """Append entries; the arrays must not change afterwards."""
        self._lock.require_held()
        self._ids.append(ids)
        self._rows.append(rows)
        self._in_memory += len(ids)
        if self._in_memory * self._dim * 4 > MEMORY_BYTES:
            self._spill()

    def _spill(self) -> None:
        if self._path is None:
            descriptor, name = tempfile.mkstemp(SPILL_FILE[1], SPILL_FILE[0], self._folder)
            self._descriptor, self._path = descriptor, Path(name)
        for rows in self._rows:
            data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
            _files.write_at(self._descriptor, self._spilled * self._dim * 4, data)
            self._spilled += len(rows)
        self._rows = []
        self._in_memory = 0

    @property
    def ids(self) -> Int64Array:
        """All ids that were not dropped, ``(n,)``."""
        if len(self._ids) != 1:
            self._ids = [np.concatenate(self._ids) if self._ids else np.empty(0, np.int64)]
        return self._ids[0]

    @property
    def rows(self) -> Float32Array:
        """All rows that were not dropped, ``(n, d)``; mapped if there is a file."""
        if self._path is None:
            if len(self._rows) != 1:
                empty = np.empty((0, self._dim), np.float32)
                self._rows = [np.concatenate(self._rows) if self._rows else empty]
            return self._rows[0]
        if self._in_memory:
            self._spill()
        return np.memmap(self._path, np.float32, "r", shape=(self._spilled, self._dim))

    def drop(self, count: int) -> None:
        """Remove the first ``count`` entries; the few others go back to memory."""
        self._ids = [self.ids[count:].copy()]
        self._rows = [np.array(self.rows[count:])]
        self._remove_file()
        self._in_memory = len(self._ids[0])

    def _remove_file(self) -> None:
        if self._path is not None:
            os.close(self._descriptor)
            if self._lock.is_held:
                _files.remove_file(self._path)
        self._path = None
        self._spilled = 0

"""Changes of a database: each is one generation, durable and visible as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

from hiernorm.progress import ProgressCallback
from hiernorm.storage.database_state import DatabaseState
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.salvage import Salvage
from hiernorm.storage.state import State, open_state
from hiernorm.storage.writer import DatabaseWriter

T = TypeVar("T")


class DatabaseChanges(DatabaseState):
    """The part of :class:`hiernorm.Database` that changes entries."""

    def add(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors; all of them, or none if one is not acceptable.

        Parameters
        ----------
        x
            ``(n, d)`` or ``(d,)``; or the name of a ``.npy``, ``.npz``, ``.safetensors`` or
            ``.parquet`` file; or an iterator of arrays ``(n, d)`` or of pairs of ids and rows, or
            of ids, rows and payload. Files and iterators may be larger than memory. In files with
            names, vectors are called ``vectors`` (or are the only matrix) and ids ``ids``.
        ids
            ``(n,)`` integers from 0 up that are not in the database. By default the ids of the
            source, or the integers that follow the largest id ever used. In a database with string
            keys, ``n`` strings.
        payload
            Named columns with a value per vector: an Arrow table, a pandas or polars frame, a dict
            of columns, a list of dicts or the name of a Parquet file. If ``x`` is a Parquet file,
            True or a list of names takes columns of that file. Values may be missing (None).
            Columns are numbers, strings, booleans, dates or timestamps and keep their type.
        progress
            Called with the number of vectors added so far and the total, or None if unknown.

        Returns
        -------
        The number of vectors added.

        Raises
        ------
        ValueError
            For NaN, infinity, a wrong number of dimensions, an id that is negative or exists
            already, or (cosine) a zero vector.
        TypeError
            For a payload column of another type than before, or of one that is not stored.
        hiernorm.DatabaseError, OSError
            If another process is writing, or the disk fails. In all cases nothing has changed.
        """
        return self._insert(x, ids, payload, progress, replace=False)

    def upsert(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors, replacing entries with the same ids; parameters as for :meth:`add`.

        The payload of an entry is replaced too: columns that are not given are null.
        """
        return self._insert(x, ids, payload, progress, replace=True)

    def _insert(
        self, x: Any, ids: Any, payload: Any, progress: ProgressCallback | None, *, replace: bool
    ) -> int:
        return self._change(
            lambda state: self._writer.insert(
                state, x, ids, progress, replace=replace, payload=payload
            )
        )

    def _change(self, act: Callable[[State], tuple[T, State]]) -> T:
        """Make a change and show its generation."""
        before = self._state
        try:
            result, after = act(before)
        except OSError:  # the change may be there: only the last fsync failed
            with suppress(OSError, DatabaseError, ValueError):
                self.refresh()
            raise
        with self._writer.state_lock:
            if self._opened is before:
                self._opened = after
            elif self._opened is not None:  # another thread has moved on, perhaps further
                self._opened = open_state(self._path, self._like, after, self._check)
        return result

    def delete(self, ids: npt.ArrayLike | Sequence[str], *, ignore_missing: bool = False) -> None:
        """Delete entries by their ids or, if there are any, by their string keys.

        Raises
        ------
        KeyError
            Naming the first id that does not exist, unless ``ignore_missing``; nothing is deleted.
        """
        self._change(lambda state: (None, self._writer.delete(state, ids, ignore_missing)))

    def compact(self, *, progress: ProgressCallback | None = None) -> None:
        """Rewrite the live entries in as few segments as possible. Answers never change.

        Raises
        ------
        hiernorm.DatabaseError
            Naming the file, the tensor and the entries, if they are not what was written. Nothing
            has changed. :meth:`salvage` keeps the others.
        """
        self._change(lambda state: (None, self._writer.compact(state, progress)))

    def salvage(self, *, progress: ProgressCallback | None = None) -> Salvage:
        """Rewrite the entries that can be proved to be what was written, and drop the others.

        An entry is kept if the checksums of the blocks that hold its row, its id and its payload
        match; codes are made anew. In a segment of an earlier version, without checksums, all
        entries are kept or none. Restore a snapshot instead, if there is one. Returns what was kept
        and lost. :meth:`salvage_folder` does the same where ``open`` refuses.
        """
        return self._change(lambda state: self._writer.salvage(state, progress))

    @classmethod
    def salvage_folder(
        cls,
        path: str | os.PathLike[str],
        *,
        lock_timeout: float = 0.0,
        progress: ProgressCallback | None = None,
    ) -> Salvage:
        """:meth:`salvage` of a database that may be too damaged to open.

        The manifest must be intact. A segment is lost as a whole if a file of it is missing or cut,
        or has a damaged header, or if the list of its deleted entries is damaged.

        Parameters
        ----------
        path
            The folder.
        lock_timeout
            Seconds to wait for another writer.
        progress
            Called with the number of entries kept so far, and of all that are kept.

        Raises
        ------
        hiernorm.DatabaseError
            If there is no database, its manifest is damaged, or a file has a later version.

        Examples
        --------
        >>> import tempfile, hiernorm
        >>> db = hiernorm.Database.create(tempfile.mkdtemp() + "/points.hn", dim=2)
        >>> db.add([[1, 0], [0, 1]])
        2
        >>> db.close()
        >>> hiernorm.Database.salvage_folder(db.path)
        Salvage(kept=2, lost=())
        """
        found, _ = DatabaseWriter(Path(path), lock_timeout).salvage(None, progress)
        return found

    def refresh(self) -> bool:
        """Move on to the newest generation; returns whether there was a newer one."""
        with self._writer.state_lock:
            before = self._state
            self._opened = open_state(self._path, self._like, before, self._check)
            return self._opened is not before

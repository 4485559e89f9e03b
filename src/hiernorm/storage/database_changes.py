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

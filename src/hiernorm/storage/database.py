"""The database: entries (id, vector) in a folder, and exact search over them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from hiernorm._deprecation import renamed_parameter
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_count, as_hit_count, as_rows, as_share, as_threshold
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.payload.answers import payload_of_hits
from hiernorm.progress import ProgressCallback
from hiernorm.settings import EXACT, Metric
from hiernorm.storage.checksums import Check
from hiernorm.storage.database_changes import DatabaseChanges
from hiernorm.storage.database_state import entries_of
from hiernorm.storage.exporter import export_entries
from hiernorm.storage.integrity import find_damage
from hiernorm.storage.search import search_exhaustively, search_range, search_state
from hiernorm.storage.selection import Selection, select
from hiernorm.storage.state import State
from hiernorm.storage.writer import create_folder, write_snapshot
from hiernorm.threads import thread_count
from hiernorm.verification import Verification, verify_hits


class Database(DatabaseChanges):
    """Entries (id, vector) in a folder: durable, searched exactly, opened without reading it all.

    The answer depends on the live entries only, not on the order of operations, on segments or on
    compaction. It has the bits of :meth:`hiernorm.Index.search` on the same entries.

    One process writes at a time, any number read. A reader stays on the generation it opened until
    :meth:`refresh`. Every change is durable when its method returns, and applied as a whole or not
    at all.

    Use :meth:`create` or :meth:`open`, not the constructor. :meth:`close` (or ``with``) lets go of
    the mapped files.

    Examples
    --------
    >>> import tempfile, hiernorm
    >>> folder = tempfile.mkdtemp()
    >>> with hiernorm.Database.create(folder + "/points.hn", dim=3) as db:
    ...     db.add([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], ids=[10, 20, 30])
    ...     db.delete([20])
    3
    >>> with hiernorm.Database.open(folder + "/points.hn") as db:
    ...     ids, scores = db.search([0, 1, 0], k=2)
    >>> ids.tolist()
    [[30, 10]]
    """

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dim: int,
        *,
        major: int | None = None,
        alpha: float | str | None = None,
        metric: Metric = "ip",
        string_keys: bool = False,
        threads: int | None = None,
        lock_timeout: float = 0.0,
    ) -> Database:
        """Make an empty database in a new folder.

        Parameters
        ----------
        path
            Folder to make; it must not exist, or be empty.
        dim, major, alpha, metric, threads
            As for :class:`hiernorm.Index`.
        string_keys
            Whether entries are named by strings: ``ids=["doc-1", "doc-2"]``. Their integer ids are
            hashes of them, so answers do not depend on the order of insertion. Needs
            ``pip install 'hiernorm[payload]'``.
        lock_timeout
            Seconds that a change waits for another writer before it gives up.

        Raises
        ------
        FileExistsError
            If the folder is not empty.
        """
        share = None if alpha is None else as_share("alpha", alpha)
        create_folder(Path(path), dim, major, share, metric, string_keys)
        return cls(Path(path), threads, lock_timeout)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        lock_timeout: float = 0.0,
        check: Check = "touched",
    ) -> Database:
        """Open a database: its files are mapped, not read.

        Parameters
        ----------
        path
            The folder.
        threads
            As for :class:`hiernorm.Index`.
        lock_timeout
            Seconds that a change waits for another writer before it gives up.
        check
            What is compared with the checksums of blocks, and when. ``"touched"``: a block of 16
            KiB, when it is first read. ``"settled"``: the same, for rows and ids only. ``"all"``:
            everything, now. ``"none"``: nothing. A block that is not what was written raises
            DatabaseError. Databases of earlier versions have no checksums: only ``"all"`` checks
            them. The certificate of an answer says what was checked.

        Raises
        ------
        hiernorm.DatabaseError
            If there is no database, or it is damaged or of another format version. Checked are the
            manifest with its digest, and size and header of every file. :meth:`check` reads
            everything.
        """
        return cls(Path(path), threads, lock_timeout, check)

    def select(self, where: Where) -> Selection:
        """Prepare a filter for many searches of this generation.

        Parameters
        ----------
        where
            An array of ids that may be returned (unknown ids are ignored), a boolean mask over
            :attr:`ids`, or a function that takes an array of ids and returns a boolean for each.
            Or a condition on the payload: a text such as ``"lang = 'en' and year >= 2020"``, or a
            ``pyarrow.compute`` expression. Its columns are :attr:`columns`, ``id`` and, with string
            keys, ``key``. Then ids may be string keys, too.
        """
        return select(self._state, where)

    @renamed_parameter("known", "_known")
    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        *,
        where: Where | None = None,
        beta: float | None = None,
        threads: int | None = None,
        batch_size: int | None = None,
        _known: Hits | None = None,
    ) -> Hits:
        """The k best entries of each query, best first: as :meth:`hiernorm.Index.search`.

        ``where`` is as for :meth:`select`, or a selection that it has made.
        """
        # _known: hits of the same queries, with the same k, in another shard, which shares no id
        # with this one. The k best of both are returned, and entries that cannot be among them are
        # skipped as early as if all were in one database. The certificate covers this search.
        state = self._state
        queries = self._checked(state, q)
        return search_state(
            state,
            queries,
            self._hit_count(k, len(queries), len(state)),
            where=where,
            beta=self._settings.checked_beta(beta),
            threads=self._thread_count(threads),
            batch_size=0 if batch_size is None else as_count("batch_size", batch_size),
            known=_known,
            digest=lambda: self._digest_of(state),
        )

    def range(
        self,
        q: npt.ArrayLike,
        threshold: float,
        *,
        where: Where | None = None,
        threads: int | None = None,
    ) -> RangeHits:
        """Every entry with score >= threshold, best first; ``where`` as for :meth:`search`."""
        state = self._state
        queries = self._checked(state, q)
        least = as_threshold(threshold)
        return search_range(
            state,
            queries,
            least,
            where=where,
            threads=self._thread_count(threads),
            digest=lambda: self._digest_of(state),
        )

    def _hit_count(self, k: int, queries: int, entries: int) -> int:
        return as_hit_count(k, queries, entries)

    def _checked(self, state: State, q: npt.ArrayLike) -> Float32Array:
        queries = as_rows("queries", q, self.dim)
        if not state.indexes:
            self._like.search(queries, 1, EXACT, 1, 1)  # nothing to find, but NaN is refused
        return queries

    def _thread_count(self, threads: int | None) -> int:
        return thread_count(self._settings.threads if threads is None else threads)

    def reconstruct(self, ids: npt.ArrayLike | Sequence[str]) -> Float32Array:
        """The vectors of ``ids``, ``(n, d)`` float32, as they were added; KeyError if unknown."""
        return self._state.rows_of(self._payload.ids_of(ids))

    def entries(self) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Ids and rows of all entries in ascending order of id, a few thousand at a time."""
        return entries_of(self._state)

    def export(
        self, path: str | os.PathLike[str], *, progress: ProgressCallback | None = None
    ) -> list[Path]:
        """Write all entries, in ascending order of id, to a file that :meth:`add` reads.

        ``.npz``, ``.safetensors`` and ``.parquet`` hold ``vectors`` and ``ids``. A ``.npy`` file
        holds the vectors; the ids go to ``<name>.ids.npy`` beside it. Payload and string keys go to
        ``.parquet`` files, from which ``add(path, payload=True)`` reads them. Returns the files
        written.
        """
        state = self._state
        payload = payload_of_hits(self._payload)
        return export_entries(Path(path), state.ids, self.dim, entries_of(state), progress, payload)

    def verify(
        self,
        q: npt.ArrayLike | None = None,
        hits: Hits | None = None,
        *,
        where: Where | None = None,
        threads: int | None = None,
    ) -> Verification:
        """Compare an answer with exhaustive search: as :meth:`hiernorm.Index.verify`."""
        if q is None or hits is None:
            return verify_without_answer(self)
        state = self._state
        queries = self._checked(state, q)
        exhaustive = search_exhaustively(
            state,
            queries,
            hits.ids.shape[1],
            where=where,
            threads=self._thread_count(threads),
        )
        return verify_hits(hits, queries, exhaustive, self.metric, state.rows_of)

    def check(self) -> Verification:
        """Read all files and list what is damaged: what is not as it was written."""
        return Verification(list(find_damage(self._path, self._like)))

    def snapshot(self, path: str | os.PathLike[str]) -> Database:
        """Copy the generation that this reader sees to a new folder; returns the opened copy.

        Writers may continue meanwhile.
        """
        write_snapshot(self._state, Path(path))
        return type(self)(Path(path), self._settings.threads, 0.0)


def verify_without_answer(database: Any) -> Verification:
    """The former meaning of ``verify()``, of a database or a sharded one: its ``check()``."""
    text = f"{type(database).__name__}.verify() without an answer is now called check()"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    found: Verification = database.check()
    return found

"""The database: entries (id, vector) in a folder, and exact search over them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy.typing as npt

from hiernorm._deprecation import renamed_parameter
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import (
    as_count,
    as_hit_count,
    as_ids,
    as_rows,
    as_share,
    as_threshold,
    is_id,
)
from hiernorm.certificate import digest_in_order
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.payload.answers import holds_key, keys_of, payload_of_hits, table_of, visible_columns
from hiernorm.progress import ProgressCallback
from hiernorm.settings import EXACT, Metric
from hiernorm.storage.checksums import Check, as_check
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.exporter import export_entries
from hiernorm.storage.integrity import find_damage
from hiernorm.storage.payload import StatePayload
from hiernorm.storage.salvage import Salvage
from hiernorm.storage.search import search_exhaustively, search_range, search_state
from hiernorm.storage.selection import Selection, select
from hiernorm.storage.state import State, open_state
from hiernorm.storage.writer import DatabaseWriter, create_folder, write_snapshot
from hiernorm.threads import thread_count
from hiernorm.verification import Verification, verify_hits

ENTRIES_AT_A_TIME = 4096

T = TypeVar("T")


class Database:
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

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled database is its path: another process opens the newest generation."""
        if self._opened is None:
            raise ValueError(f"the database {self._path} was closed: it cannot be pickled")
        return type(self), (self._path, self._settings.threads, self._lock_timeout, self._check)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K, as the database was created; None: each segment chooses it from its entries."""
        return self._settings.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    def generation(self) -> int:
        """The number of changes that led to what this reader sees."""
        return self._state.manifest.generation

    @property
    def next_id(self) -> int:
        """The first id that :meth:`add` gives by default: larger than every id so far."""
        return self._state.manifest.next_id

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return self._state.ids

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
        """The payload columns: name to type, such as ``int64``, ``string`` or ``date``."""
        return visible_columns(self._payload)

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
        identity = state.manifest.digest
        known = self._digests.get(identity)
        if known is None:
            known = digest_in_order(self._settings.digested(), self.dim, _entries(state))
            self._digests = {identity: known}
        return known

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, id: object) -> bool:
        if isinstance(id, str):
            return holds_key(self._payload, id)
        return is_id(id) and bool(self._state.holds(as_ids(id))[0])

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

    # Changes: each is one generation.

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
        and lost. :meth:`salvage_folder` does the same where :meth:`open` refuses.
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

    # Reading.

    def refresh(self) -> bool:
        """Move on to the newest generation; returns whether there was a newer one."""
        with self._writer.state_lock:
            before = self._state
            self._opened = open_state(self._path, self._like, before, self._check)
            return self._opened is not before

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
        """The k best entries of each query, best first.

        Parameters
        ----------
        q
            ``(m, d)``, or ``(d,)`` for one query.
        k
            Number of hits. If there are fewer entries, ids are filled with -1, scores with -inf.
        where
            Search only these entries, as for :meth:`select`. The answer is that of a database with
            no other entries.
        beta, threads, batch_size
            As for :meth:`hiernorm.Index.search`.
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

    def payload(
        self,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """The payload of ``ids`` as a ``pyarrow.Table``, in their order.

        Parameters
        ----------
        ids
            Ids, or string keys if the database has them. By default all :attr:`ids`.
        columns
            Names of payload columns; by default all of them.

        Returns
        -------
        A table with the column ``id``, with ``key`` if there are string keys, and with the columns.
        Missing values are null.

        Raises
        ------
        KeyError
            Naming the first id that does not exist.

        Examples
        --------
        >>> import tempfile, hiernorm
        >>> db = hiernorm.Database.create(tempfile.mkdtemp() + "/docs.hn", dim=2, string_keys=True)
        >>> db.add([[1, 0], [0, 1]], ids=["a", "b"], payload={"year": [2019, 2021]})
        2
        >>> db.payload(["b"]).select(["key", "year"]).to_pylist()
        [{'key': 'b', 'year': 2021}]
        >>> db.search([1, 1], k=2, where="year >= 2020").keys.tolist()
        [['b', None]]
        """
        payload = self._payload
        wanted = self.ids if ids is None else payload.ids_of(ids)
        return table_of(payload, wanted, columns)

    def entries(self) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Ids and rows of all entries in ascending order of id, a few thousand at a time."""
        return _entries(self._state)

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
        return export_entries(Path(path), state.ids, self.dim, _entries(state), progress, payload)

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


def _entries(state: State) -> Iterator[tuple[Int64Array, Float32Array]]:
    for first in range(0, len(state), ENTRIES_AT_A_TIME):
        ids = state.ids[first : first + ENTRIES_AT_A_TIME]
        yield ids, state.rows_of(ids)

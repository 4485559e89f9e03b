"""The writer of a database: changes under the lock, one generation each; new folders."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _files
from hiernorm.extras import check_extra
from hiernorm.payload import EXTRA, KEY
from hiernorm.payload.columns import Column
from hiernorm.progress import AdvanceCallback, ProgressCallback
from hiernorm.settings import IndexSettings, Metric
from hiernorm.storage.block_checks import require_intact_file
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.importer import Importer
from hiernorm.storage.lock import LOCKS, WriterLock
from hiernorm.storage.manifest import (
    MANIFEST,
    Manifest,
    Parameters,
    is_ours,
    new_identity,
    read_manifest,
)
from hiernorm.storage.payload import StatePayload
from hiernorm.storage.salvage import LostEntries, Salvage, open_readable
from hiernorm.storage.spill_buffer import SpillBuffer
from hiernorm.storage.state import State, open_state
from hiernorm.storage.tombstones import write_tombstones
from hiernorm.storage.transaction import Transaction, remove_leftovers

_writers: weakref.WeakSet[DatabaseWriter] = weakref.WeakSet()


class DatabaseWriter:
    """Makes changes to the database in ``path``, one at a time, also among threads.

    ``finish`` is called with every transaction that succeeds.
    """

    def __init__(
        self,
        path: Path,
        lock_timeout: float,
        finish: Callable[[Transaction], State] = Transaction.commit,
    ) -> None:
        self._path = path
        self._lock_timeout = lock_timeout
        self._finish = finish
        self.renew_locks()
        self._parameters = read_manifest(path).parameters
        self.like = self.settings(None).make_core()

    def renew_locks(self) -> None:
        """Make the locks among threads anew: in a forked child no thread gives them back."""
        self._change_lock = threading.Lock()
        self.state_lock = threading.Lock()
        _writers.add(self)

    def settings(self, threads: int | None) -> IndexSettings:
        """The parameters of the database."""
        return self._parameters.settings(threads)

    @contextmanager
    def _transaction(
        self, state: State | None, lost: list[LostEntries] | None = None
    ) -> Iterator[Transaction]:
        """Yields a transaction on the newest generation, which the caller commits.

        Segments that cannot be opened are an error, or left out and added to ``lost``.
        """
        with (
            self._change_lock,
            self._explained_errors() as before,
            WriterLock(self._path, self._lock_timeout) as lock,
        ):
            if lost is None:
                base = open_state(self._path, self.like, state)
            else:
                base, lost[:] = open_readable(self._path, self.like, state)
            before.append(base.manifest.generation)
            try:
                yield Transaction(self._path, base, self.settings(None), self.like, lock)
            except BaseException:
                if lock.is_held:
                    self._clean_up(base)
                raise

    def _clean_up(self, base: State) -> None:
        """Remove what a failed change has written; if that fails too, the next change does it."""
        with suppress(OSError, DatabaseError):
            remove_leftovers(self._path, open_state(self._path, self.like, base))

    @contextmanager
    def _explained_errors(self) -> Iterator[list[int]]:
        """Add to a disk error whether the database has changed.

        Yields a list that takes the generation before the change.
        """
        before: list[int] = []
        try:
            yield before
        except OSError as error:
            name = error.filename
            ours = name is None or Path(os.fsdecode(name)).parent == self._path
            if error.errno is None or not ours:
                raise
            changed = False
            if before:
                with suppress(OSError, DatabaseError):
                    changed = read_manifest(self._path).generation != before[0]
            what = "changed, but the disk did not confirm it" if changed else "not changed"
            raise OSError(
                error.errno, f"{self._path} was {what}: {os.strerror(error.errno)}"
            ) from error

    def insert(
        self,
        state: State,
        x: Any,
        ids: npt.ArrayLike | None,
        progress: ProgressCallback | None,
        *,
        replace: bool,
        payload: Any = None,
    ) -> tuple[int, State]:
        """Add or replace entries; returns how many, and the new state."""
        with self._transaction(state) as transaction:
            dim = self._parameters.dim
            importer = Importer(transaction, self.like, dim, replace, payload)
            with SpillBuffer(self._path, dim, transaction.lock) as buffer:
                count = importer.run(x, ids, buffer, progress)
            return count, self._finish(transaction) if count else transaction.base

    def delete(self, state: State, given: npt.ArrayLike, ignore_missing: bool) -> State:
        """Delete entries by their ids, or by their string keys."""
        with self._transaction(state) as transaction:
            ids = StatePayload(transaction.base).ids_of(given, ignore_missing=ignore_missing)
            found = transaction.remove(ids)
            if not found.all() and not ignore_missing:
                raise KeyError(f"id {ids[int(np.argmin(found))]} is not in the database")
            return self._finish(transaction) if found.any() else transaction.base

    def compact(self, state: State, progress: ProgressCallback | None) -> State:
        """Rewrite all live entries in as few segments as possible."""
        with self._transaction(state) as transaction:
            if all(view.bits is None for view in transaction.base.views) and (
                len(transaction.parts) <= -(-len(transaction.base) // transaction.most_entries)
            ):
                return transaction.base
            transaction.rewrite(_advancing(progress, len(transaction.base)))
            return self._finish(transaction)

    def salvage(
        self, state: State | None, progress: ProgressCallback | None
    ) -> tuple[Salvage, State]:
        """Rewrite the live entries that can be proved intact; returns what was kept and lost."""
        lost: list[LostEntries] = []
        with self._transaction(state, lost) as transaction:
            lost += [part.keep_intact() for part in transaction.parts]
            kept = sum(part.live for part in transaction.parts)
            transaction.rewrite(_advancing(progress, kept))
            found = Salvage(kept, tuple(entries for entries in lost if entries.count))
            return found, self._finish(transaction)


def _renew_locks_in_child() -> None:
    for writer in list(_writers):
        writer.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks_in_child)


def _advancing(progress: ProgressCallback | None, total: int) -> AdvanceCallback:
    """Add up what is done, for a callback that wants the sum."""
    done = 0

    def advance(entries: int) -> None:
        nonlocal done
        done += entries
        if progress is not None:
            progress(done, total)

    return advance


def create_folder(
    folder: Path,
    dim: int,
    major: int | None,
    alpha: float | None,
    metric: Metric,
    string_keys: bool = False,
) -> None:
    """Make the folder of an empty database."""
    share = None if alpha is None else float(alpha)
    parameters = Parameters(dim, major, share, metric, string_keys)
    parameters.settings()
    if string_keys:
        check_extra(EXTRA, "pyarrow")
    columns = (Column(KEY, "string"),) if string_keys else ()
    _write_new(folder, Manifest(parameters, columns=columns, identity=new_identity()))


def write_snapshot(state: State, folder: Path) -> None:
    """Copy a generation to a new folder, from its mapped files: their names may be gone."""
    _write_new(folder, state.manifest, state)


def _write_new(folder: Path, manifest: Manifest, state: State | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with WriterLock(folder, 0.0):
        # Files of an interrupted call are removed; the manifest is written last.
        found = {entry.name for entry in folder.iterdir()} - LOCKS
        if not all(is_ours(name) for name in found):
            what = "is a database already" if MANIFEST in found else "is not empty"
            raise FileExistsError(f"{folder} {what}: choose another folder")
        for name in found:
            _files.remove_file(folder / name)
        for view in () if state is None else state.views:
            view.segment.require_intact(*view.segment.entry_tensors())
            view.segment.file.copy_to(folder / view.record.data.file)
            if view.record.tombstones is not None:
                write_tombstones(folder / view.record.tombstones.file, view.mask())
            if view.payload is not None:
                require_intact_file(view.payload.file)
                view.payload.file.copy_to(folder / view.payload.file.path.name)
        _files.sync_folder(folder)
        manifest.write(folder)
        _files.sync_folder(folder.parent)

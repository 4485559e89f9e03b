"""One process at a time matches or verifies a database: a lock on a file beside it.

SQLite locks a database only while a transaction is written. Two runs between whose transactions the
other writes would verify matches that are replaced meanwhile. Readers take no lock; neither does
COLMAP itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hiernorm.storage.lock import WriterLock

_held = threading.local()


@contextmanager
def one_writer(database: Path | str, wait_seconds: float) -> Iterator[None]:
    """Hold the lock of a database; LockedError if another run holds it after ``wait_seconds``.

    The thread that holds it may take it again.
    """
    path = Path(database).resolve()
    locks: dict[Path, _DatabaseLock] = _held.__dict__.setdefault("locks", {})
    if path in locks and locks[path].is_held:  # not in a forked child
        yield
        return
    with _DatabaseLock(path, wait_seconds) as lock:
        locks[path] = lock
        try:
            yield
        finally:
            locks.pop(path, None)


class _DatabaseLock(WriterLock):
    """A lock whose file is there while it is held; one that a killed process left counts nothing.

    Parameters
    ----------
    database
        The file of the database.
    timeout
        Seconds to wait for another run.
    """

    def __init__(self, database: Path, timeout: float) -> None:
        super().__init__(database.parent, timeout, f"{database.name}.lock")
        self._database = database
        self._file = database.with_name(f"{database.name}.lock")

    def __enter__(self) -> _DatabaseLock:
        while True:
            super().__enter__()
            if self._is_in_place():
                return self
            super().__exit__()  # the last owner removed this file: lock the one in its place

    def __exit__(self, *details: object) -> None:
        if self.is_held:
            with suppress(OSError):  # Windows removes no open file: it stays, without a lock
                self._file.unlink()
        super().__exit__(*details)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._file.stat())
        except FileNotFoundError:
            return False

    def _refusal(self, holder: str) -> str:
        return (
            f"{self._database} is being matched or verified by {holder}: wait for it, then run "
            "this again; pairs that are matched already are kept"
        )

"""The writer lock: the operating system releases it when its process dies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType

from hiernorm.storage.errors import LockedError

LOCK = "lock"
PAUSE_SECONDS = 0.02

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 2**30, os.SEEK_SET)  # far behind the text, which other processes read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_to_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class WriterLock:
    """A lock that is held inside a ``with`` block; the file stays, only the lock on it counts.

    Parameters
    ----------
    folder
        The folder of the database.
    timeout
        Seconds to wait for another writer.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout
        self._descriptor = -1

    def __enter__(self) -> WriterLock:
        path = self._folder / LOCK
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags, 0o666)
        deadline = time.monotonic() + self._timeout
        while not _try_to_lock(descriptor):
            if time.monotonic() >= deadline:
                holder = _holder(descriptor)
                os.close(descriptor)
                raise LockedError(
                    f"{self._folder} is being written by {holder}: try again when it is done, or "
                    "open the database with a longer lock_timeout"
                )
            time.sleep(PAUSE_SECONDS)
        self._descriptor = descriptor
        _sign(descriptor)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)  # this releases the lock


def _sign(descriptor: int) -> None:
    """Write the number of this process, for the error message of another one."""
    try:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except OSError:  # a full disk: the lock holds nevertheless
        pass


def _holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        number = os.read(descriptor, 32).decode(errors="replace").strip()
    except OSError:
        number = ""
    return f"process {number}" if number.isdecimal() else "another process"

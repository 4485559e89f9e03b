"""The writer lock: the operating system releases it when its process dies.

The lock belongs to the process that took it. A child that is forked meanwhile gives its copy up as
soon as it runs, and cannot write in the owner's place. The owner unlocks before it closes the file:
a copy that a child has not closed yet does not keep the lock.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

from hiernorm.storage.errors import DatabaseError, LockedError

LOCK = "lock"
COLLECTION_LOCK = "collection.lock"
"""Of a collection of photos: held while its database and its table change together."""
LOCKS = frozenset({LOCK, COLLECTION_LOCK})
PAUSE_SECONDS = 0.02
SIGNATURE_BYTES = 21
"""Bytes at the start of the file that name the last owner; the file is never made shorter."""

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 2**30, os.SEEK_SET)  # far behind the text, which other processes read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 2**30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_to_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


_held: set[WriterLock] = set()
"""The locks that this process holds."""


class WriterLock:
    """A lock that is held inside a ``with`` block; the file stays, only the lock on it counts.

    Parameters
    ----------
    folder
        The folder of the database.
    timeout
        Seconds to wait for another writer.
    name
        The name of the file.
    """

    def __init__(self, folder: Path, timeout: float, name: str = LOCK) -> None:
        self._folder = folder
        self._name = name
        self._timeout = timeout
        self._descriptor = -1

    def __enter__(self) -> WriterLock:
        descriptor = _open_lock(self._folder / self._name)
        try:
            deadline = time.monotonic() + self._timeout
            while not _try_to_lock(descriptor):
                if time.monotonic() >= deadline:
                    raise LockedError(self._refusal(_holder(descriptor)))
                time.sleep(PAUSE_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(self)
        _sign(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_held:
            try:
                _unlock(self._descriptor)
            finally:
                self._close()

    def _refusal(self, holder: str) -> str:
        """The message if another process does not release the lock in time."""
        return (
            f"{self._folder} is being written by {holder}: try again when it is done, or open the "
            "database with a longer lock_timeout"
        )

    def _close(self) -> None:
        """Close the file without unlocking it, which would take the lock from its owner."""
        _held.discard(self)
        os.close(self._descriptor)
        self._descriptor = -1

    @property
    def is_held(self) -> bool:
        """Whether this process holds the lock; a forked child does not."""
        return self._descriptor >= 0

    def require_held(self) -> None:
        """DatabaseError unless this process holds the lock."""
        if not self.is_held:
            raise DatabaseError(
                f"{self._folder} is not locked by process {os.getpid()}: a change cannot be "
                "continued in a forked process"
            )


def _close_in_child() -> None:
    for lock in list(_held):
        lock._close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _open_lock(path: Path) -> int:
    """Open or create the file; a link or anything else in its place is refused, not followed."""
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    refusal = f"{path} is not a regular file: remove it, hiernorm makes a new one"
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError:
        if path.is_symlink():
            raise DatabaseError(refusal) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DatabaseError(refusal)
    return descriptor


def _sign(descriptor: int) -> None:
    """Write the number of this process, for the error message of another one."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".ljust(SIGNATURE_BYTES).encode())
    except OSError:  # a full disk: the lock holds nevertheless
        pass


def _holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        number = os.read(descriptor, SIGNATURE_BYTES).decode(errors="replace").strip()
    except OSError:
        number = ""
    return f"process {number}" if number.isdecimal() else "another process"

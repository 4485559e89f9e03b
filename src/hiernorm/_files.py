"""The only place that changes files: write, fsync, rename, remove.

Every function either does all it says or raises OSError; tests make each system call fail in turn.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

Bytes = bytes | memoryview

_BINARY = getattr(os, "O_BINARY", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


def create_file(path: Path) -> int:
    """Create ``path``, which must not exist, and return its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _CLOSE_ON_EXEC, 0o666)


def write_at(descriptor: int, offset: int, data: Bytes) -> None:
    """Write all of ``data`` at ``offset``, in as many calls as it takes."""
    left = memoryview(data).cast("B")
    os.lseek(descriptor, offset, os.SEEK_SET)
    while left.nbytes:
        written = os.write(descriptor, left)
        if written <= 0:
            raise OSError(errno.EIO, "nothing was written")
        left = left[written:]


def sync_file(descriptor: int) -> None:
    """Return when what was written is on the disk."""
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return when names created, renamed or removed in ``folder`` are on the disk."""
    if os.name == "nt":  # a folder has no descriptor there, and NTFS keeps a journal of names
        return
    descriptor = os.open(folder, os.O_RDONLY | _CLOSE_ON_EXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Make ``data`` the contents of ``path``: at every moment the old ones or the new ones."""
    fresh = path.with_name(path.name + ".new")
    remove_file(fresh)
    descriptor = create_file(fresh)
    try:
        write_at(descriptor, 0, data)
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    os.replace(fresh, path)
    sync_folder(path.parent)


def remove_file(path: Path) -> bool:
    """Remove ``path`` if it can be done; a file that is open elsewhere may have to wait."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True

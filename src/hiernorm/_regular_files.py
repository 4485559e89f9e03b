"""Reading of regular files: a FIFO or a device in the place of one is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NotRegularError(OSError):
    """What should be a regular file is something else."""


def open_regular(path: Path) -> int:
    """Open ``path`` for reading; NotRegularError if it is a folder, a FIFO, a device or a socket.

    Reading those could wait, or go on, for ever.
    """
    flags = os.O_RDONLY
    for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = KINDS.get(stat.S_IFMT(mode), "something else")
        raise NotRegularError(f"{path} is {kind}, expected a regular file")
    return descriptor


def read_regular(path: Path, most: int) -> bytes:
    """The contents of a regular file, or its first ``most`` bytes."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(most)

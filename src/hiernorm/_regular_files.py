"""Reading of regular files: a FIFO or a device in the place of one is refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


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
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.EINVAL, "Not a regular file", str(path))
    return descriptor


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The contents of a regular file, or its first ``most`` bytes."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read() if most is None else file.read(most)

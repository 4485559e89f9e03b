"""Room on the disk, asked for before libraries write that end the process when there is none."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

SPACE = 2**20
"""Bytes that a library needs on the disk, whatever it writes."""


def require_space(path: Path | str, needed: int, writer: str) -> None:
    """Raise OSError unless the disk of ``path`` has room for ``needed`` bytes and SPACE more.

    Parameters
    ----------
    path
        The file or folder that is written.
    needed
        Bytes that will be written.
    writer
        Name of the library that writes, for the error.
    """
    place = Path(path).resolve()
    free = shutil.disk_usage(place if place.is_dir() else place.parent).free
    if free < needed + SPACE:
        raise OSError(
            errno.ENOSPC,
            f"no space left for {path}: {writer} may need {needed + SPACE:,} bytes, {free:,} are "
            "free. What was written is kept: make room and run this again",
        )

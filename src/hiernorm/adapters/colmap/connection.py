"""How COLMAP's database is opened, its schema, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hiernorm.storage.errors import (
    DamagedError,
    FormatVersionError,
    LockedError,
    NotADatabaseError,
)

COLUMNS = {
    "images": {"image_id", "name"},
    "keypoints": {"image_id", "rows", "cols", "data"},
    "descriptors": {"image_id", "rows", "cols", "data"},
    "matches": {"pair_id", "rows", "cols", "data"},
    "two_view_geometries": {"pair_id", "rows", "cols", "data"},
}
"""What is read and written here; all versions of COLMAP from 3.0 on have these."""


def open_database(path: Path, *, writable: bool, wait_seconds: float) -> sqlite3.Connection:
    """Open a database of COLMAP.

    COLMAP leaves a database in WAL mode. SQLite then writes files beside it, even to read it. Where
    it may not, and no log holds changes, the file is read as one that nobody changes.

    Parameters
    ----------
    path
        The file.
    writable
        Whether it will be written.
    wait_seconds
        How long a statement waits for another process that is writing.
    """
    if not path.is_file():
        raise NotADatabaseError(f"no database at {path}: expected a file of COLMAP")
    if writable:
        _require_rights(path)
        return _connect(path, "mode=rw", wait_seconds)
    opened = _connect(path, "mode=ro", wait_seconds)
    try:
        opened.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        if os.access(path.resolve().parent, os.W_OK) or not _needs_rights(error):
            return opened  # its next statement tells what is wrong
        opened.close()
        log = Path(f"{path.resolve()}-wal")
        if log.exists() and log.stat().st_size:
            raise PermissionError(
                errno.EACCES,
                f"{path} cannot be read: {log.name} beside it holds changes, and its folder may "
                "not be written by this user. Copy both files to a folder of your own, and use "
                "the copy",
            ) from error
        return _connect(path, "immutable=1", wait_seconds)
    except sqlite3.DatabaseError:
        pass  # the same here
    return opened


def _connect(path: Path, mode: str, wait_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?{mode}",
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def _needs_rights(error: sqlite3.Error) -> bool:
    return "readonly" in str(error) or "unable to open" in str(error)


def _require_rights(path: Path) -> None:
    """PermissionError unless this user may write a file and the log beside it."""
    for place in (path, path.resolve().parent):
        if not os.access(place, os.W_OK):
            raise _no_rights(path, f" ({place})" if place != path else "")


def _no_rights(path: Path, where: str = "") -> PermissionError:
    what = f"the folder of {path}{where}" if where else f"{path}"
    return PermissionError(
        errno.EACCES,
        f"{what} may not be written by this user: copy the database to a folder of your own, or "
        "ask its owner for the right to write the file and its folder",
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of this package, which say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise LockedError(
                f"{path} is locked: another process is writing to it. Wait for it, then run this "
                "again; pairs that are matched already are kept"
            ) from error
        if "full" in text:
            raise OSError(
                errno.ENOSPC,
                f"no space left for {path}. What was written is kept: make room and run this again",
            ) from error
        if "not a database" in text:
            raise NotADatabaseError(f"{path} is not a database of COLMAP") from error
        if "malformed" in text:
            raise DamagedError(f"{path} is damaged: {text}") from error
        if "readonly" in text:
            raise _no_rights(path) from error
        if "disk I/O" in text or "unable to open" in text:
            raise OSError(
                errno.EIO,
                f"{path} cannot be read or written ({text}): is the disk full, or its folder "
                "closed to this user? What was written is kept: mend this and run it again",
            ) from error
        raise


def column_names(connection: sqlite3.Connection, table: str) -> set[str]:
    """The names of a table's columns; none if there is no such table."""
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def require_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the tables are COLMAP's."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for table, needed in COLUMNS.items():
        found = column_names(connection, table)
        if not found:
            raise NotADatabaseError(
                f"{path} is an SQLite file, but not of COLMAP: it has no table {table!r}"
            )
        if not needed <= found:
            raise FormatVersionError(
                f"{path} has the schema of another version of COLMAP ({version}): table {table!r} "
                f"has no column {', '.join(sorted(needed - found))}. Open it once with that "
                "version or a newer one, or update hiernorm"
            )

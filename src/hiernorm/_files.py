"""The only place that changes files: write, fsync, rename, remove.

Every function either does all it says or raises OSError; tests make each system call fail in turn.

A file is replaced by writing another one beside it and renaming that: a reader finds the old
contents or the new ones, never a part. :func:`replace_file` is for a file of a database, which has
one writer at a time; :func:`replacing` is for any other file, and for libraries that write to a
path. The contents reach the disk before the rename, and the rename before either returns, unless
the caller of :func:`replacing` says otherwise.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Bytes = bytes | memoryview
WRITE_BYTES = 1 << 24
"""Bytes of one call of the system."""

_BINARY = getattr(os, "O_BINARY", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


def create_file(path: Path) -> int:
    """Create ``path``, which must not exist, and return its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _CLOSE_ON_EXEC, 0o666)


def write_at(descriptor: int, offset: int, data: Bytes) -> None:
    """Write all of ``data`` at ``offset``, in as many calls as it takes.

    No call takes long, so that Ctrl-C is heard between two of them.
    """
    left = memoryview(data).cast("B")
    while left.nbytes:
        written = _write_part(descriptor, offset, left[:WRITE_BYTES])
        if written <= 0:
            raise OSError(errno.EIO, "nothing was written")
        left, offset = left[written:], offset + written


if hasattr(os, "pwrite"):  # a forked process shares the position of a descriptor

    def _write_part(descriptor: int, offset: int, data: memoryview) -> int:
        return os.pwrite(descriptor, data, offset)
else:

    def _write_part(descriptor: int, offset: int, data: memoryview) -> int:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


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
    """Make ``data`` the contents of ``path``, durably; for one writer at a time.

    The new contents are written to ``<name>.new``. What a killed process left there is removed.
    """
    fresh = _fixed_name(path)
    remove_file(fresh)
    descriptor = create_file(fresh)
    try:
        write_at(descriptor, 0, data)
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    os.replace(fresh, path)
    sync_folder(path.parent)


@contextmanager
def replacing(path: Path, *, durable: bool = True, alone: bool = False) -> Iterator[Path]:
    """Yield a path to write to; it becomes ``path`` when the block ends without an error.

    Parameters
    ----------
    path
        The file to create or replace.
    durable
        Whether to wait for the disk. Without it the file is still whole or not there when a
        process dies, but not when the power fails: enough for what can be made again.
    alone
        Whether there is one writer at a time. Then what a killed process left behind is
        overwritten. Without it any number of processes and threads may write, and the last wins.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "greeting.txt"
    >>> with replacing(path) as fresh:
    ...     _ = fresh.write_text("hello")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('hello', 1)
    """
    fresh = _fixed_name(path) if alone else _unique_name(path)
    remove_file(fresh)
    try:
        yield fresh
        if durable:
            descriptor = os.open(fresh, os.O_RDWR | _BINARY | _CLOSE_ON_EXEC)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
        os.replace(fresh, path)
    except BaseException:
        remove_file(fresh)
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill beside ``path``; it becomes ``path`` when the block ends.

    After an error the folder is removed, and nothing else: neither ``path``, if it was there as an
    empty folder, nor what another process has put there meanwhile.

    Raises
    ------
    FileExistsError
        If ``path`` is there and not empty, before the block or after it.
    """
    _require_vacant(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _unique_name(path)
    fresh.mkdir()
    try:
        yield fresh
        if path.is_dir():
            shutil.copymode(path, fresh)
        try:
            if os.name == "nt" and path.is_dir():
                os.rmdir(path)  # there, a folder does not replace an empty one
            os.rename(fresh, path)
        except OSError:
            _require_vacant(path)
            raise
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    sync_folder(path.parent)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of ``path`` when the block ends without an error.

    For one writer at a time. Nothing of the former folder is left in the new one. A system cannot
    replace a folder in one step: for a moment there is none. A process that dies leaves the former
    folder, the new one, or none; the next call puts the former one back.
    """
    fresh, former = _fixed_name(path), path.with_name(path.name + ".old")
    if os.path.lexists(former) and not os.path.lexists(path):
        os.rename(former, path)
    for left in (fresh, former):
        _remove_tree(left)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        _sync_tree(fresh)
        if os.path.lexists(path):
            os.rename(path, former)
        try:
            os.rename(fresh, path)
        except BaseException:
            if os.path.lexists(former) and not os.path.lexists(path):
                os.rename(former, path)
            raise
    except BaseException:
        _remove_tree(fresh)
        raise
    sync_folder(path.parent)
    _remove_tree(former)


def _sync_tree(folder: Path) -> None:
    """Return when all files of a folder are on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(place, name), os.O_RDWR | _BINARY | _CLOSE_ON_EXEC)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(place))


def _remove_tree(path: Path) -> None:
    """Remove a folder, or a link to one, if it can be done."""
    if path.is_symlink() or not path.is_dir():
        remove_file(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _require_vacant(path: Path) -> None:
    if path.is_symlink() or path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(f"{path} is there and not empty: choose another folder")


def write_atomically(path: Path, content: bytes) -> None:
    """Make ``content`` the contents of ``path``, durably; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def _fixed_name(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _unique_name(path: Path) -> Path:
    """A hidden name beside ``path`` that ends as it does: some libraries go by the suffix."""
    return path.with_name(f".{os.getpid()}.{threading.get_ident()}.{path.name}")


def remove_file(path: Path) -> bool:
    """Remove ``path`` if it can be done; a file that is open elsewhere may have to wait."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True

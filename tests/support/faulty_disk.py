"""Stand-ins for the system calls of hiernorm._files: ones that fail, ones that remember.

None of them waits for the disk: what an fsync is good for is what they simulate.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

WRITE = "pwrite" if hasattr(os, "pwrite") else "write"
"""The call that writes to a file."""


class FailingCalls:
    """``os``, except that the n-th call of a kind fails; every kind is counted."""

    def __init__(self, kind: str | None = None, number: int = -1, error: int = 0) -> None:
        self.counts = {WRITE: 0, "fsync": 0, "replace": 0, "open": 0}
        self._fails = (kind, number, error)

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in self.counts:
            return real

        def call(*arguments: Any) -> Any:
            number = self.counts[name]
            self.counts[name] += 1
            kind, failing, error = self._fails
            if (name, number) == (kind, failing):
                raise OSError(error, os.strerror(error))
            return None if name == "fsync" else real(*arguments)

        return call


class ShortWrites:
    """``os``, except that a write takes no more than a few bytes at a time."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name == WRITE:
            return lambda descriptor, data, *at: real(descriptor, bytes(data[:1000]), *at)
        return real


class _Inode:
    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.durable = data


class Disk:
    """``os`` for one folder, and what would be left of it if the power failed now.

    A file keeps what it had at its last fsync, a folder the names it had at its own. What came
    after may be there or not: ``remains`` builds the cases. The fsync of number ``failing`` fails.
    """

    def __init__(self, folder: Path, failing: int = -1) -> None:
        self.fsyncs = 0
        self._failing = failing
        self._folder = folder
        self._names = {
            file.name: _Inode(file.read_bytes()) for file in folder.iterdir() if file.name != "lock"
        }
        self._durable_names = dict(self._names)
        self._open: dict[int, _Inode | None] = {}
        self._at: dict[int, int] = {}
        self.moments: list[list[dict[str, bytes]]] = []
        self._take()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        if Path(path) == self._folder:
            self._open[descriptor] = None
        elif flags & os.O_CREAT:
            inode = self._names[Path(path).name] = _Inode()
            self._open[descriptor] = inode
            self._take()
        return descriptor

    def lseek(self, descriptor: int, offset: int, whence: int) -> int:
        self._at[descriptor] = offset
        return os.lseek(descriptor, offset, whence)

    def pwrite(self, descriptor: int, data: memoryview, offset: int) -> int:
        self.lseek(descriptor, offset, os.SEEK_SET)
        return self.write(descriptor, data)

    def write(self, descriptor: int, data: memoryview) -> int:
        written = os.write(descriptor, data)
        inode = self._open[descriptor]
        assert inode is not None
        at = self._at[descriptor]
        before = inode.data[:at].ljust(at, b"\0")
        inode.data = before + bytes(data[:written]) + inode.data[at + written :]
        self._at[descriptor] = at + written
        self._take()
        return written

    def fsync(self, descriptor: int) -> None:
        self.fsyncs += 1
        if self.fsyncs - 1 == self._failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        inode = self._open[descriptor]
        if inode is None:
            self._durable_names = dict(self._names)
        else:
            inode.durable = inode.data
        self._take()

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)
        self._names[Path(target).name] = self._names.pop(Path(source).name)
        self._take()

    def unlink(self, path: Path) -> None:
        os.unlink(path)
        self._names.pop(Path(path).name, None)
        self._take()

    def _take(self) -> None:
        self.moments.append(self.remains())

    def remains(self) -> list[dict[str, bytes]]:
        """What the folder may hold after a failure of the power at this moment."""

        def torn(inode: _Inode) -> bytes:
            return inode.data[: (len(inode.durable) + len(inode.data)) // 2]

        # Names need not reach the disk in the order in which they were given, or taken away.
        renamed = self._durable_names | {
            name: inode for name, inode in self._names.items() if name in self._durable_names
        }
        removed = {n: inode for n, inode in self._durable_names.items() if n in self._names}
        return [
            {name: inode.durable for name, inode in renamed.items()},
            {name: inode.durable for name, inode in removed.items()},
            {name: inode.durable for name, inode in self._durable_names.items()},
            {name: inode.durable for name, inode in self._names.items()},
            {name: torn(inode) for name, inode in self._names.items()},
            {name: torn(inode) for name, inode in self._durable_names.items()},
            {name: inode.data for name, inode in self._names.items()},
        ]

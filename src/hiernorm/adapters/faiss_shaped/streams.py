"""Places that an index is written to and read from: functions, files, and buffers around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from hiernorm.array_types import AnyArray
from hiernorm.arrays import as_count


class Readable(Protocol):
    """What gives bytes."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""


class Writable(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""


class IOReader:
    """What an index is read from; a subclass has :meth:`read`."""

    def read(self, size: int) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        raise NotImplementedError(f"{type(self).__name__} must have a method read(size)")

    def __call__(self, ptr: AnyArray, size: int, nitems: int) -> int:
        """Fill an array with items of ``size`` bytes each; returns how many there were."""
        wanted, found = size * nitems, bytearray()
        while len(found) < wanted and (piece := self.read(wanted - len(found))):
            found += piece
        ptr.reshape(-1).view("u1")[: len(found)] = memoryview(found)
        return len(found) // size


class PyCallbackIOReader(IOReader):
    """A place to read an index from: a function that returns the next n bytes, or fewer."""

    def __init__(self, callback: Callable[[int], bytes], bsz: int = 1 << 20) -> None:
        self.callback = callback
        self.bsz = as_count("bsz", bsz)

    def read(self, size: int) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        return self.callback(min(size, self.bsz))


class FileIOReader(IOReader):
    """A file to read an index from."""

    def __init__(self, fname: str | Path) -> None:
        self._file = Path(fname).open("rb")  # noqa: SIM115  (open as long as this is)

    def read(self, size: int) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        return self._file.read(size)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class BufferedIOReader(IOReader):
    """Asks another reader for blocks of ``bsz`` bytes.

    Examples
    --------
    >>> pieces = iter([b"ab", b"cd", b""])
    >>> BufferedIOReader(PyCallbackIOReader(lambda size: next(pieces)), 2).read(3)
    b'ab'
    """

    def __init__(self, reader: Readable, bsz: int = 1 << 20) -> None:
        self.reader = reader
        self.bsz = as_count("bsz", bsz)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        if not self._rest:
            self._rest = bytes(self.reader.read(self.bsz))
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


class PyCallbackIOWriter:
    """A place to write an index to: a function that is called with bytes."""

    def __init__(self, callback: Callable[[bytes], Any], bsz: int = 1 << 20) -> None:
        self.write = callback


class FileIOWriter:
    """A file to write an index to."""

    def __init__(self, fname: str | Path) -> None:
        self._file = Path(fname).open("wb")  # noqa: SIM115  (open as long as this is)

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self._file.write(data)

    def flush(self) -> None:
        """Let the system have all bytes; ``write_index`` calls it at the end."""
        self._file.flush()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class BufferedIOWriter:
    """Collects bytes for another writer, which gets blocks of ``bsz`` bytes.

    Examples
    --------
    >>> written = []
    >>> writer = BufferedIOWriter(PyCallbackIOWriter(written.append), 2)
    >>> writer.write(b"abcde")
    >>> writer.flush()
    >>> written
    [b'ab', b'cd', b'e']
    """

    def __init__(self, writer: Writable, bsz: int = 1 << 20) -> None:
        self.writer = writer
        self.bsz = as_count("bsz", bsz)
        self._kept = bytearray()

    def write(self, data: bytes) -> None:
        """Write bytes, now or later."""
        self._kept += data
        whole = len(self._kept) - len(self._kept) % self.bsz
        for first in range(0, whole, self.bsz):
            self.writer.write(bytes(self._kept[first : first + self.bsz]))
        del self._kept[:whole]

    def flush(self) -> None:
        """Write what is kept; ``write_index`` calls it at the end."""
        if self._kept:
            self.writer.write(bytes(self._kept))
            self._kept.clear()

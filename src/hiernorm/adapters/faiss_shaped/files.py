"""Indexes as files and as arrays of bytes, which FAISS reads and writes too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm._files import replacing
from hiernorm.adapters.faiss_shaped.base import Index
from hiernorm.adapters.faiss_shaped.errors import MissingFileError, UnreadableIndexError
from hiernorm.adapters.faiss_shaped.old_files import is_old, read_old
from hiernorm.adapters.faiss_shaped.records import Bytes, decode, encode


def write_index(index: Index, fname: Any, io_flags: int = 0) -> None:
    """Write an index to a file, as a whole or not at all, in FAISS's format.

    Parameters
    ----------
    index
        Any index of this package; ``faiss.read_index`` reads it too. An :class:`IndexHN` is an
        ``IndexIDMap2`` there.
    fname
        A path, an open binary file, or a writer such as :class:`PyCallbackIOWriter`.
    io_flags
        Not used: FAISS's flags are about kinds of indexes that are not here.
    """
    if hasattr(fname, "write"):
        for piece in encode(index):
            fname.write(piece)
        if hasattr(fname, "flush"):
            fname.flush()
        return
    with replacing(Path(fname)) as fresh, fresh.open("wb") as file:
        for piece in encode(index):
            file.write(piece)


def read_index(fname: Any, io_flags: int = 0) -> Index:
    """Read a flat index that :func:`write_index` or FAISS wrote, with or without ids around it.

    Parameters
    ----------
    fname
        A path, an open binary file, or a reader such as :class:`PyCallbackIOReader`.
    io_flags
        Not used: the index is always in memory.

    Raises
    ------
    FileNotFoundError, ValueError
        For a missing file; for a damaged one, or another kind of index. Both are RuntimeError too,
        as in FAISS.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> import hiernorm.adapters.faiss_shaped as faiss
    >>> index = faiss.IndexFlatL2(2)
    >>> index.add(np.float32([[0, 0], [3, 4]]))
    >>> path = tempfile.mkdtemp() + "/vectors.faiss"
    >>> faiss.write_index(index, path)
    >>> faiss.read_index(path)
    IndexFlatL2(d=2, ntotal=2)
    """
    if hasattr(fname, "read"):
        return _decode(lambda: decode(_stream_reader(fname.read)), "the stream")
    path = Path(fname)
    if not path.is_file():
        raise MissingFileError(f"no such file: {path}")
    whole = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
    return _decode(lambda: _decode_whole(whole), str(path))


def serialize_index(index: Index, io_flags: int = 0) -> Bytes:
    """The bytes of :func:`write_index` as an array ``(n,)`` uint8."""
    return np.frombuffer(b"".join(encode(index)), np.uint8).copy()


def deserialize_index(data: npt.ArrayLike | bytes, io_flags: int = 0) -> Index:
    """The index whose bytes :func:`serialize_index`, or that of FAISS, returned."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(data, np.uint8)
    array = np.asarray(data)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise TypeError(f"data must be bytes or uint8 (n,), got {array.dtype} {array.shape}")
    return _decode(lambda: _decode_whole(array), "data")


def _decode(make: Callable[[], Index], source: str) -> Index:
    """The index that ``make`` decodes; an error names the source of its bytes."""
    try:
        return make()
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableIndexError(
            f"{source} is no flat index of FAISS or of write_index, or it is damaged: {error}"
        ) from None


def _decode_whole(data: Bytes) -> Index:
    """The index of bytes that hold nothing else."""
    if is_old(data):
        return read_old(data)
    at = 0

    def read(size: int) -> Bytes:
        nonlocal at
        at += size
        return data[at - size : at]

    index = decode(read)
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its end")
    return index


def _stream_reader(read_some: Callable[[int], bytes]) -> Callable[[int], Bytes]:
    """Reads as many bytes as are wanted, in as many calls as it takes: a pipe may never end."""

    def read(size: int) -> Bytes:
        pieces = bytearray()
        while len(pieces) < size and (piece := read_some(size - len(pieces))):
            pieces += piece
        return np.frombuffer(pieces, np.uint8)

    return read

"""Tombstones: a file beside a segment with one bit per entry, 0 for a deleted one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hiernorm.array_types import BoolArray, UInt8Array
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.tensors import TensorFile, TensorWriter


def pack(mask: BoolArray) -> UInt8Array:
    """One bit per entry, lowest bit of a byte first, in whole words of 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> pack(np.array([True, False, True])).tolist()
    [5, 0, 0, 0, 0, 0, 0, 0]
    """
    bits = np.zeros(-(-len(mask) // 64) * 8, np.uint8)
    packed = np.packbits(mask, bitorder="little")
    bits[: len(packed)] = packed
    return bits


def unpack(bits: UInt8Array, entries: int) -> BoolArray:
    """The mask ``(entries,)`` that :func:`pack` made ``bits`` of."""
    return np.unpackbits(bits, count=entries, bitorder="little").view(np.bool_)


def write_tombstones(path: Path, mask: BoolArray) -> FileRecord:
    """Write which entries are alive to a new file."""
    bits = pack(mask)
    writer = TensorWriter(path, {"live": ("U8", bits.shape)}, {})
    try:
        writer.write("live", bits)
        written = writer.finish()
    finally:
        writer.close()
    return FileRecord(path.name, written.size, written.header_digest)


def read_tombstones(file: TensorFile, entries: int, live: int) -> UInt8Array:
    """Read the bits of a mapped file; they are few, so their digest is always checked."""
    bits: UInt8Array = file.array("live")
    if bits.dtype != np.uint8 or bits.shape != (-(-entries // 64) * 8,):
        raise DamagedError(f"{file.path} does not fit a segment of {entries} entries")
    if file.recorded_digests().get("live") != file.digest_of("live"):
        raise DamagedError(f"{file.path} is not what was written: restore it from a snapshot")
    count = int(np.unpackbits(bits).sum())
    if count != live or bool(np.unpackbits(bits, bitorder="little")[entries:].any()):
        raise DamagedError(f"{file.path} has {count} live entries, the manifest says {live}")
    return bits

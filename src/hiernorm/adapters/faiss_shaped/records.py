"""FAISS's own format of flat indexes, as bytes.

A record, all numbers little-endian::

    four letters  what it is: IxFI, IxF2 (flat), IxMp, IxM2 (ids around a flat index)
    header        d int32, ntotal int64, 2**20 int64, the same again or the letters of a note,
                  is_trained bool, metric int32
    flat          number of floats uint64, float32 vectors
    ids around    the record of the flat index, number of ids uint64, int64 ids

FAISS reads what is written here, and the bytes are those that FAISS writes. An :class:`IndexHN` is
an IxM2 whose first header announces a note behind the record; FAISS ignores both::

    note          length uint32, CRC-32 of all before the note uint32, JSON
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.adapters.faiss_shaped.base import METRIC_INNER_PRODUCT, METRIC_L2, METRICS, Index
from hiernorm.adapters.faiss_shaped.flat import IndexFlat, IndexFlatIP, IndexFlatL2
from hiernorm.adapters.faiss_shaped.hn import IndexHN
from hiernorm.adapters.faiss_shaped.id_map import IndexIDMap, IndexIDMap2
from hiernorm.array_types import AnyArray, Float32Array, Int64Array
from hiernorm.arrays import as_count

Bytes = npt.NDArray[np.uint8]

LETTERS = {METRIC_INNER_PRODUCT: b"IxFI", METRIC_L2: b"IxF2"}
FLAT: dict[bytes, Callable[[int], IndexFlat]] = {b"IxFI": IndexFlatIP, b"IxF2": IndexFlatL2}
WITH_IDS = {b"IxMp": IndexIDMap, b"IxM2": IndexIDMap2}
HEADER = struct.Struct("<iqq8s?i")
COUNT = struct.Struct("<Q")
UNUSED = 1 << 20
NO_NOTE = struct.pack("<q", UNUSED)
HAS_NOTE = b"HNnote1\n"
NOTE = struct.Struct("<II")


def encode(index: Index) -> Iterator[bytes | memoryview]:
    """The bytes of an index, piece by piece."""
    if isinstance(index, IndexHN):
        ids = index._entry_ids()
        crc = 0
        for piece in _encode_ids(index, b"IxM2", ids, index.reconstruct_batch(ids)):
            crc = zlib.crc32(piece, crc)
            yield piece
        yield _encode_note(index, crc)
    elif isinstance(index, IndexIDMap):
        letters = b"IxM2" if isinstance(index, IndexIDMap2) else b"IxMp"
        yield from _encode_ids(index, letters, index.id_map, index.index.reconstruct_n())
    elif isinstance(index, IndexFlat):
        yield from _encode_flat(index, index.reconstruct_n())
    else:
        raise TypeError(f"index must be one of {__package__}, got {type(index).__name__}")


def _encode_flat(index: Index, rows: Float32Array) -> Iterator[bytes | memoryview]:
    yield LETTERS[index.metric_type] + _encode_header(index) + COUNT.pack(rows.size)
    yield rows.astype("<f4", copy=False).reshape(-1).view(np.uint8).data


def _encode_ids(
    index: Index, letters: bytes, ids: Int64Array, rows: Float32Array
) -> Iterator[bytes | memoryview]:
    yield letters + _encode_header(index, HAS_NOTE if isinstance(index, IndexHN) else NO_NOTE)
    yield from _encode_flat(index, rows)
    yield COUNT.pack(len(ids))
    yield ids.astype("<i8", copy=False).view(np.uint8).data


def _encode_header(index: Index, note: bytes = NO_NOTE) -> bytes:
    return HEADER.pack(index.d, index.ntotal, UNUSED, note, True, index.metric_type)


def _encode_note(index: IndexHN, crc: int) -> bytes:
    engine = index._index
    note = {
        "kind": "IndexHN",
        "major": None if engine.alpha is None else engine.major,
        "alpha": engine.alpha,
        "next_id": engine._next_id,
    }
    text = json.dumps(note).encode()
    return NOTE.pack(len(text), crc) + text


@dataclass
class _Parts:
    """What a record has."""

    outer: bytes | None
    """The letters of the ids around the flat index, if there are any."""
    letters: bytes
    d: int
    metric: int
    rows: Float32Array
    ids: Int64Array | None
    noted: bool


def decode(read: Callable[[int], Bytes]) -> Index:
    """The index of a record; ``read`` returns the next n bytes, or what is left if it is less.

    No byte behind the record is read. ValueError says what is wrong with it.
    """
    reader = _Reader(read)
    parts = reader.parts()
    if parts.noted:
        return _make_hn(parts, reader.note())
    flat = FLAT[parts.letters](parts.d)
    if parts.outer is None:
        flat.add(parts.rows)
        return flat
    assert parts.ids is not None
    index = WITH_IDS[parts.outer](flat)
    index.add_with_ids(parts.rows, parts.ids)
    return index


def _make_hn(parts: _Parts, note: Any) -> IndexHN:
    """The IndexHN that a record and its note describe."""
    if parts.ids is None or note["kind"] != "IndexHN":
        raise ValueError(f"its note is of {note['kind']!r}")
    index = IndexHN(parts.d, parts.metric, major=note["major"], alpha=note["alpha"])
    index.add_with_ids(parts.rows, parts.ids)
    index._index._next_id = as_count("next_id", note["next_id"], least=0)
    return index


class _Reader:
    """Reads a record from the start to the end, and its checksum with it."""

    def __init__(self, read: Callable[[int], Bytes]) -> None:
        self.read = read
        self.at = 0
        self.crc = 0

    def take(self, size: int) -> Bytes:
        """The next ``size`` bytes."""
        data = self.read(size)
        if len(data) < size:
            raise ValueError(f"{size} bytes are expected at byte {self.at}, {len(data)} are left")
        self.at += size
        self.crc = zlib.crc32(data.data, self.crc)
        return data

    def array(self, kind: str, count: int) -> AnyArray:
        """``count`` values, which must be announced; a copy, so that it is aligned."""
        (announced,) = COUNT.unpack(self.take(COUNT.size).data)
        if announced != count:
            raise ValueError(f"{count} values are expected, {announced} are announced")
        return np.array(self.take(np.dtype(kind).itemsize * count)).view(kind)

    def header(self) -> tuple[int, int, int, bool]:
        """Dimensions, entries, metric, and whether a note follows."""
        d, entries, _, note, _, metric = HEADER.unpack(self.take(HEADER.size).data)
        if metric not in METRICS:
            raise ValueError(f"its metric is {metric}, not 0 (inner product) or 1 (L2)")
        if d < 2 or entries < 0:
            raise ValueError(f"it has {d} dimensions and {entries} entries")
        return d, entries, metric, note == HAS_NOTE

    def parts(self) -> _Parts:
        """A flat index, or one with ids around it."""
        letters = self.take(4).tobytes()
        if letters not in WITH_IDS:
            return self.flat(letters)
        *header, noted = self.header()
        parts = self.flat(self.take(4).tobytes())
        if header != [parts.d, len(parts.rows), parts.metric]:
            raise ValueError("the index and the ids around it have different headers")
        parts.outer, parts.noted = letters, noted
        parts.ids = self.array("<i8", len(parts.rows)).astype(np.int64, copy=False)
        return parts

    def flat(self, letters: bytes) -> _Parts:
        """A flat index."""
        if letters not in FLAT:
            raise ValueError(
                f"it starts with {letters.decode('latin-1')!r}; read_index reads IxFI and IxF2 "
                "(flat indexes), and IxMp and IxM2 (ids) around them"
            )
        d, entries, metric, _ = self.header()
        if LETTERS[metric] != letters:
            raise ValueError(f"it starts with {letters!r}, and its metric is {metric}")
        rows = self.array("<f4", entries * d).astype(np.float32, copy=False)
        return _Parts(None, letters, d, metric, rows.reshape(-1, d), None, False)

    def note(self) -> Any:
        """What stands behind the index, if its checksum is right."""
        crc = self.crc
        length, expected = NOTE.unpack(self.take(NOTE.size).data)
        if crc != expected:
            raise ValueError("its bytes do not have its checksum")
        return json.loads(self.take(length).tobytes())

"""Safetensors files: written piece by piece with a digest per tensor, mapped without a copy.

A file is the length of the header (8 bytes, little-endian), the header (JSON: name to dtype, shape
and offsets; strings under ``__metadata__``) and the data, which the tensors tile without a gap. Our
own files keep every tensor at a multiple of 64 bytes; tensors called ``padding.<n>`` see to it.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm import _files
from hiernorm._regular_files import NotRegularError, open_regular
from hiernorm.array_types import AnyArray, UInt8Array
from hiernorm.storage.checksums import (
    CHECKSUMS,
    BlockSums,
    count_blocks,
    describe_checksums,
)
from hiernorm.storage.errors import DamagedError

ALIGNMENT = 64
PADDING = "padding."
"""How the names of tensors that fill gaps begin."""
HASHED_BYTES = 1 << 24
"""Bytes that a digest takes in at a time."""
MAX_HEADER = 1 << 24
"""Maximum size of a header in bytes."""
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
OTHER_SIZES = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
"""Sizes of types that NumPy does not have."""


@dataclass(frozen=True)
class Tensor:
    """A tensor in a file; ``begin`` and ``end`` are offsets from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """The header of a file, checked against the size of the file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    digest: str


def read_header(
    data: bytes | memoryview | mmap.mmap, size: int, expected: str | None = None
) -> Header:
    """The header of a file of ``size`` bytes whose contents are ``data``.

    Every length and offset is checked before it is used: nothing outside the file is ever read, and
    no more memory is allocated than the header needs. A header whose digest is not the ``expected``
    one is not parsed.

    Raises
    ------
    DamagedError
        Saying what is wrong.
    """
    if size < 8:
        raise DamagedError(f"has {size} bytes, a safetensors file has at least 8")
    length = int.from_bytes(bytes(data[:8]), "little")
    if length > min(size - 8, MAX_HEADER):
        raise DamagedError(
            f"announces a header of {length} bytes, at most {min(size - 8, MAX_HEADER)} are there"
        )
    text = bytes(data[8 : 8 + length])
    digest = hashlib.sha256(bytes(data[:8]) + text).hexdigest()
    if expected is not None and digest != expected:
        raise DamagedError("has a header that is not the one that was written")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"has a header that cannot be read: {error}") from None
    if not isinstance(header, dict):
        raise DamagedError("has a header that is no JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise DamagedError("has metadata that are not strings")
    tensors = {name: _check_tensor(name, entry, 8 + length) for name, entry in header.items()}
    _check_tiling(tensors, 8 + length, size)
    return Header(tensors, metadata, digest)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_tensor(name: str, entry: object, start: int) -> Tensor:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise DamagedError(f"describes tensor {name!r} by other than dtype, shape, data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or (dtype not in DTYPES and dtype not in OTHER_SIZES):
        raise DamagedError(f"has tensor {name!r} of an unknown dtype {dtype!r}")
    for what, values in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(values, list) or not all(_is_count(value) for value in values):
            raise DamagedError(f"has tensor {name!r} with {what} that are no counts")
    if len(offsets) != 2 or len(shape) > 32:
        raise DamagedError(f"has tensor {name!r} with a shape or data_offsets of the wrong length")
    size = np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else OTHER_SIZES[dtype]
    if math.prod(shape) * size != offsets[1] - offsets[0]:
        raise DamagedError(
            f"has tensor {name!r} of shape {shape} in {offsets[1] - offsets[0]} bytes"
        )
    return Tensor(dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _check_tiling(tensors: Mapping[str, Tensor], start: int, size: int) -> None:
    """Tensors follow one another from the header to the end of the file."""
    at = start
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.begin, tensor.end)):
        if tensor.begin != at:
            raise DamagedError("has tensors with a gap between them, or that overlap")
        at = tensor.end
    if at != size:
        raise DamagedError(f"has {size} bytes, its header speaks of {at}")


class TensorFile:
    """A mapped file; tensors are read-only views of the mapping, which lives as long as they do."""

    def __init__(self, path: Path, expected: str | None = None) -> None:
        self.path = path
        try:
            descriptor = open_regular(path)
        except NotRegularError:
            raise DamagedError(f"{path} is not a regular file") from None
        try:
            self.size = os.fstat(descriptor).st_size
            if self.size < 8:
                raise DamagedError(f"{path} has {self.size} bytes, at least 8 were expected")
            self._map = mmap.mmap(descriptor, self.size, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        try:
            self.header = read_header(self._map, self.size, expected)
        except DamagedError as error:
            raise DamagedError(f"{path} {error}") from None

    def array(self, name: str) -> AnyArray:
        """The tensor ``name``, not copied."""
        tensor = self.header.tensors.get(name)
        if tensor is None:
            raise DamagedError(f"{self.path} has no tensor {name!r}")
        if tensor.dtype not in DTYPES:
            raise DamagedError(f"{self.path}: NumPy has no dtype {tensor.dtype} for {name!r}")
        count = math.prod(tensor.shape)
        flat = np.frombuffer(self._map, DTYPES[tensor.dtype], count, tensor.begin)
        return flat.reshape(tensor.shape)

    def in_order(self) -> list[str]:
        """The names of all tensors in the order of the file."""
        tensors = self.header.tensors
        return sorted(tensors, key=lambda name: (tensors[name].begin, tensors[name].end))

    def bytes_from(self, name: str, more: int) -> UInt8Array:
        """The bytes of ``name`` and ``more`` of what follows it in the file."""
        tensor = self.header.tensors[name]
        if tensor.end + more > self.size:
            raise DamagedError(f"{self.path} ends less than {more} bytes behind {name!r}")
        return np.frombuffer(self._map, np.uint8, tensor.end + more - tensor.begin, tensor.begin)

    def copy_to(self, path: Path) -> None:
        """Write the whole file to a new one, durably."""
        descriptor = _files.create_file(path)
        try:
            with memoryview(self._map) as view:
                _files.write_at(descriptor, 0, view)
            _files.sync_file(descriptor)
        finally:
            os.close(descriptor)

    def recorded_digests(self) -> dict[str, str]:
        """The digests in the metadata, which files of a database have."""
        try:
            found = json.loads(self.header.metadata["digests"])
        except (KeyError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise DamagedError(f"{self.path} has no digests of its tensors")
        return found

    def digest_of(self, name: str) -> str:
        """SHA-256 of the bytes of ``name``."""
        tensor = self.header.tensors[name]
        with memoryview(self._map) as view:
            digest = hashlib.sha256()
            _update(digest, view[tensor.begin : tensor.end])
            return digest.hexdigest()


def _update(digest: Any, data: memoryview) -> None:
    """Take ``data`` into ``digest``, piece by piece: Ctrl-C is heard between two."""
    for first in range(0, data.nbytes, HASHED_BYTES):
        digest.update(data[first : first + HASHED_BYTES])


@dataclass(frozen=True)
class WrittenFile:
    """The size of a written file and the digest of its header."""

    size: int
    header_digest: str


class TensorWriter:
    """Writes a new file; tensors may be filled in any order, each from front to back.

    Parameters
    ----------
    path
        The file, which must not exist.
    tensors
        dtype (as in the header) and shape of each, in the order of the file.
    metadata
        Metadata of the header, beside the digests.
    checksums
        Whether to add the checksums of blocks, as one more tensor.
    """

    def __init__(
        self,
        path: Path,
        tensors: Mapping[str, tuple[str, tuple[int, ...]]],
        metadata: Mapping[str, str],
        *,
        checksums: bool = False,
    ) -> None:
        self._path = path
        self._metadata = dict(metadata)
        self._sums = {name: BlockSums() for name in tensors} if checksums else {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._digests: dict[str, Any] = {}
        at = 0
        for name, (dtype, shape) in tensors.items():
            at = self._place(name, dtype, shape, at)
            if at % ALIGNMENT:
                at = self._place(f"{PADDING}{name}", "U8", (-at % ALIGNMENT,), at)
        if checksums:
            self._metadata["checksums"] = describe_checksums()
            offsets = [self._entries[name]["data_offsets"] for name in tensors]
            blocks = sum(count_blocks(end - begin) for begin, end in offsets)
            at = self._place(CHECKSUMS, "U32", (blocks,), at)
        # Digests are of one length, so the header's is known before they are.
        self._start = 8 + len(self._header(dict.fromkeys(self._entries, "0" * 64)))
        self._end = self._start + at
        self._at = {name: entry["data_offsets"][0] for name, entry in self._entries.items()}
        self._descriptor = _files.create_file(path)

    def _place(self, name: str, dtype: str, shape: tuple[int, ...], at: int) -> int:
        end = at + math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
        self._entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        self._digests[name] = hashlib.sha256()
        return end

    def _header(self, digests: Mapping[str, str]) -> bytes:
        metadata = {**self._metadata, "digests": json.dumps(digests, sort_keys=True)}
        text = json.dumps({"__metadata__": metadata, **self._entries}, separators=(",", ":"))
        return text.encode() + b" " * (-(8 + len(text.encode())) % ALIGNMENT)

    def write(self, name: str, values: AnyArray) -> None:
        """Write the next ``values`` of a tensor."""
        entry = self._entries[name]
        part = np.ascontiguousarray(values, dtype=DTYPES[entry["dtype"]])
        data = part.reshape(-1).view(np.uint8).data
        if self._at[name] + data.nbytes > entry["data_offsets"][1]:
            raise ValueError(f"{self._path}: more than {entry['shape']} for {name!r}")
        _files.write_at(self._descriptor, self._start + self._at[name], data)
        _update(self._digests[name], data)
        if name in self._sums:
            self._sums[name].update(np.frombuffer(data, np.uint8))
        self._at[name] += data.nbytes

    def finish(self) -> WrittenFile:
        """Write checksums, padding and header, and wait for the disk."""
        if self._sums:
            self.write(CHECKSUMS, np.concatenate([s.values() for s in self._sums.values()]))
        for name, entry in self._entries.items():
            if name.startswith(PADDING):
                self.write(name, np.zeros(entry["shape"], np.uint8))
            if self._at[name] != entry["data_offsets"][1]:
                raise ValueError(f"{self._path}: less than {entry['shape']} for {name!r}")
        header = self._header({name: sha.hexdigest() for name, sha in self._digests.items()})
        head = len(header).to_bytes(8, "little") + header
        _files.write_at(self._descriptor, 0, head)
        _files.sync_file(self._descriptor)
        self.close()
        return WrittenFile(self._end, hashlib.sha256(head).hexdigest())

    def close(self) -> None:
        """Close the file, also when it is not complete."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

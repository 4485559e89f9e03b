"""The checks of a mapped file: which blocks of its tensors are what was written."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from hiernorm import _core
from hiernorm.array_types import BoolArray, UInt32Array
from hiernorm.storage.checksums import CHECKSUMS
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import PADDING, TensorFile

RESTORE = "restore the database from a snapshot, or keep the rest with compact --salvage"
MOST_NAMED = 3
"""Ranges of entries that an error names."""


class FileChecks:
    """The checks of all tensors of a file; none if it was written without checksums.

    Raises
    ------
    DamagedError
        If the checksums are not what was written, or of an unknown kind; to ``fall_back``, a file
        with damaged checksums is as one without.
    """

    def __init__(self, file: TensorFile, *, fall_back: bool = False) -> None:
        self._file = file
        self.tensors: dict[str, _core.BlockChecks] = {}
        if CHECKSUMS not in file.header.tensors:
            return
        self.block_bytes = _block_bytes(file)
        if file.recorded_digests().get(CHECKSUMS) != file.digest_of(CHECKSUMS):
            if fall_back:
                return
            raise DamagedError(self.describe(CHECKSUMS, []))
        sums: UInt32Array = file.array(CHECKSUMS)
        at = 0
        for name in file.in_order():
            if name == CHECKSUMS or name.startswith(PADDING):
                continue
            data = file.bytes_from(name, 0)
            count = -(-len(data) // self.block_bytes)
            try:
                self.tensors[name] = _core.BlockChecks(
                    data, sums[at : at + count], self.block_bytes
                )
            except (ValueError, TypeError) as error:
                raise DamagedError(f"{file.path}: {error}") from None
            at += count
        if at != len(sums):
            raise DamagedError(f"{file.path} has {len(sums)} checksums, {at} were expected")

    def __bool__(self) -> bool:
        return bool(self.tensors)

    def require_intact(self, names: Iterable[str]) -> None:
        """Read tensors whole, whatever was read before; DamagedError names what is wrong.

        A file without checksums is compared with its digests, which do not tell rows.
        """
        for name in names:
            if self.tensors:
                damaged = self.tensors[name].damaged()
                if damaged:
                    raise DamagedError(self.describe(name, damaged))
            elif self._file.recorded_digests().get(name) != self._file.digest_of(name):
                raise DamagedError(self.describe(name, []))

    def found(self) -> list[str]:
        """Describe the damage that searches have met."""
        met = {name: checks.found for name, checks in self.tensors.items()}
        return [self.describe(name, [block]) for name, block in met.items() if block is not None]

    def describe(self, name: str, blocks: list[int]) -> str:
        """An error message for damaged blocks of a tensor."""
        where = ""
        if name in ("ids", "rows") and blocks:
            ranges = [self._items(name, block) for block in blocks]
            texts = [f"{first} to {last - 1}" for first, last in ranges[:MOST_NAMED]]
            more = f" and {len(ranges) - MOST_NAMED} more ranges" * (len(ranges) > MOST_NAMED)
            where = f" of the entries at positions {', '.join(texts)}{more}"
        return f"{self._file.path}: {name!r}{where} is not what was written: {RESTORE}"

    def _items(self, name: str, block: int) -> tuple[int, int]:
        """The entries of ``ids`` or ``rows`` that a block has a part of: first, and one past."""
        tensor = self._file.header.tensors[name]
        size = (tensor.end - tensor.begin) // tensor.shape[0]
        last = -(-(block + 1) * self.block_bytes // size)
        return block * self.block_bytes // size, min(tensor.shape[0], last)

    def intact_items(self, name: str) -> BoolArray:
        """Which entries of ``ids``, ``rows`` or a table of ids ``(n,)`` are what was written."""
        intact = np.ones(self._file.header.tensors[name].shape[0], np.bool_)
        if self.tensors:
            for block in self.tensors[name].damaged():
                first, last = self._items(name, block)
                intact[first:last] = False
        elif self._file.recorded_digests().get(name) != self._file.digest_of(name):
            intact[:] = False
        return intact


def require_intact_file(file: TensorFile) -> None:
    """Read a file of a database whole; DamagedError unless all digests match."""
    digests = file.recorded_digests()
    for name in file.header.tensors:
        if digests.get(name) != file.digest_of(name):
            raise DamagedError(f"{file.path}: {name!r} is not what was written: {RESTORE}")


def _block_bytes(file: TensorFile) -> int:
    try:
        kind = json.loads(file.header.metadata["checksums"])
        if kind["algorithm"] == "crc32c" and isinstance(kind["block_bytes"], int):
            return max(1, int(kind["block_bytes"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise DamagedError(f"{file.path} has checksums of an unknown kind")

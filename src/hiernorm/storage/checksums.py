"""Checksums of blocks: a CRC-32C for every 16 KiB of every tensor of a segment.

A digest of a whole tensor says whether a file is what was written, but only to those who read all
of it. A checksum of a block says the same of the few blocks that a search reads. The checksums are
a tensor of the file themselves, whose digest is in the header, whose digest is in the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from hiernorm import _core
from hiernorm.array_types import UInt8Array, UInt32Array

CHECKSUMS = "checksums"
"""The name of the tensor of checksums, the last one of a file that has them."""
BLOCK_BYTES = 1 << 14

Check = Literal["all", "touched", "settled", "none"]
"""What a reader checks, strongest first; see :meth:`hiernorm.Database.open`."""
SETTLED = ("ids", "rows", "sorted_ids", "sorted_positions", "norms", "cone_norms", "rotation")
"""Tensors that ``"settled"`` checks: what scores are computed from, and what is small."""


def as_check(value: object) -> Check:
    """``value``, if it is one of the four words."""
    if value not in get_args(Check):
        known = ", ".join(repr(word) for word in get_args(Check))
        raise ValueError(f"check must be one of {known}, got {value!r}")
    return value  # type: ignore[return-value]


def weakest(checks: Iterable[Check]) -> Check:
    """The check that holds for all; ``"all"`` if there are none.

    Examples
    --------
    >>> weakest(["all", "settled", "touched"])
    'settled'
    """
    order = get_args(Check)
    word: Check = order[max((order.index(check) for check in checks), default=0)]
    return word


class BlockSums:
    """The checksums of a tensor that is written piece by piece."""

    def __init__(self) -> None:
        self._sums: list[int] = []
        self._open_bytes = 0

    def update(self, data: UInt8Array) -> None:
        """Take in the next bytes ``(n,)``."""
        at = 0
        while at < len(data):
            part = data[at : at + BLOCK_BYTES - self._open_bytes]
            if self._open_bytes:
                self._sums[-1] = _core.crc32c(part, self._sums[-1])
            else:
                self._sums.append(_core.crc32c(part))
            self._open_bytes = (self._open_bytes + len(part)) % BLOCK_BYTES
            at += len(part)

    def values(self) -> UInt32Array:
        """The checksums so far."""
        return np.array(self._sums, np.uint32)


def count_blocks(nbytes: int) -> int:
    """The number of checksums of a tensor."""
    return -(-nbytes // BLOCK_BYTES)


def describe_checksums() -> str:
    """What the metadata of a file say about its checksums."""
    return json.dumps({"algorithm": "crc32c", "block_bytes": BLOCK_BYTES}, sort_keys=True)

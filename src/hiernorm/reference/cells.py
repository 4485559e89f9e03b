"""The step *skip cells*: cones around blocks of entries, and a query's side of them.

The native counterparts are ``cpp/core/cells/cone_query.cpp`` and ``search/cell_skipper.cpp``. A
cone is a direction in integers, and the cosine and the sine of the widest angle of a member to it,
times the direction's norm. One integer product tells whether a member can reach a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.reference.canonical import Int64Array
from hiernorm.reference.query import (
    CODE_LIMIT,
    OFFSET,
    PAIR_LIMIT,
    PARTIAL_LIMIT,
    ROUND_UP,
    Query,
    encode,
    largest_pair,
    root_up,
    rows_of,
)

BLOCK, RANGE = 16, 8192
"""Entries of a block, and those for which cells are skipped at a time."""
NEAREST, FOLLOWED = 16, 6
"""Blocks of entries that seeds are taken from, and cones of each level that lead to as many."""
EFFORT_ENTRIES, MOST_EFFORT = 2**18, 8
"""Entries for which so many blocks are read once more, and how often at most."""
SLOTS_OF_STEP = 12.8
"""Slots of codes that can be scanned in a row while a search goes from one block to another."""
TRIALS = 4
"""Ranges tried before skipping is given up."""
LEAST_NEED = 0.05
"""Below this cosine nearly every cone would be read."""


class ConeQuery:
    """A query's direction, and the angle that a threshold allows."""

    def __init__(self, query: Query, norm: float, tail: float, view_error: float) -> None:
        direction, length = query.view[: query.major], query.major_norm
        self.slack = query.margin * query.largest.norm + query.major_norm * view_error
        if query.tails:
            direction = np.append(direction, query.minor_norm)
            length = float(np.sqrt(length * length + query.minor_norm * query.minor_norm))
        else:
            self.slack += query.minor_norm * tail
        self.norm = length * norm * ROUND_UP
        direction = direction * (1.0 / length if length > 0 else 0.0)
        dims = len(direction)
        self.cosine_slot = -(-dims // 2) * 2
        largest = CODE_LIMIT + 0.5 * float(np.sqrt(dims)) + 1.0
        smallest = (largest + CODE_LIMIT) / (PARTIAL_LIMIT - 2.0 * largest - CODE_LIMIT)
        pair = max(1.0, largest_pair(direction[: dims // 2 * 2]))
        self.step = max(pair / (PAIR_LIMIT - 2), smallest) * ROUND_UP
        codes, error = encode(direction, self.step)
        self.towards = np.zeros(self.cosine_slot + 4, np.int64)
        self.towards[:dims] = codes
        self.cut = -int(np.ceil(root_up(error) * largest / self.step)) - 2

    def aim(self, threshold: float) -> Int64Array | None:
        """Codes under which a cone with no member that reaches the threshold is not above the cut.

        None where the threshold is too low for cones to rule anything out.
        """
        need = (threshold - self.slack) / self.norm * (2.0 - ROUND_UP)
        if not need > LEAST_NEED:
            return None
        cosine = min(need, 1.0)
        sine = root_up(1.0 - cosine * cosine)
        codes = self.towards.copy()
        codes[self.cosine_slot] = -np.floor(cosine / self.step)
        codes[self.cosine_slot + 2] = np.ceil(sine / self.step)
        return codes


class Cells:
    """The cones of an index under one query."""

    def __init__(self, query: Query, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self.entries = len(tensors["ids"])
        self.query = ConeQuery(query, *tensors["cone_norms"].tolist())
        slots = len(self.query.towards)
        self.cones = {
            level: rows_of(tensors[f"cones_{level}"])[:, :slots] - OFFSET
            for level in (BLOCK, BLOCK**2, BLOCK**3)
        }
        slots = tensors["major_codes"].shape[1] * 4
        self.most_read = slots / (slots + SLOTS_OF_STEP)  # more of a range is better read whole
        self.effort = min(1 + self.entries // EFFORT_ENTRIES, MOST_EFFORT)
        self.tried = self.whole = 0

    def nearest(self, wanted: int) -> Int64Array:
        """Entries of the blocks that point much the same way as the query."""
        blocks = max(NEAREST, 2 * wanted // BLOCK) * self.effort + min(wanted, NEAREST)
        near = np.arange(-(-self.entries // BLOCK**4))
        for level in (BLOCK**3, BLOCK**2, BLOCK):
            inside = self._inside(near, -(-self.entries // level))
            scores = self.cones[level][inside] @ self.query.towards
            most = blocks if level == BLOCK else blocks * FOLLOWED // NEAREST
            near = np.sort(inside[np.argsort(-scores, kind="stable")[:most]])
        return self._inside(near, self.entries)

    @staticmethod
    def _inside(groups: Int64Array, end: int) -> Int64Array:
        members = (groups[:, np.newaxis] * BLOCK + np.arange(BLOCK)).ravel()
        return members[members < end]

    def skip(self, first: int, threshold: float) -> tuple[Int64Array | None, bool]:
        """The blocks of a range that are left, and whether any was skipped; None: read all."""
        aimed = self.query.aim(threshold)
        gave_up = self.tried >= TRIALS and 4 * self.whole >= 3 * self.tried
        if gave_up or aimed is None:
            return None, False
        self.tried += 1
        blocks = np.arange(first // BLOCK, -(-min(first + RANGE, self.entries) // BLOCK))
        left = blocks
        for level in (BLOCK**3, BLOCK**2, BLOCK):
            above = self.cones[level] @ aimed > self.query.cut
            left = left[above[left // (level // BLOCK)]]
        if len(left) > self.most_read * len(blocks):
            self.whole += 1
            return None, False
        return left, len(left) < len(blocks)

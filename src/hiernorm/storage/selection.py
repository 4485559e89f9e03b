"""Filters: a condition on ids becomes one bit per entry, which the scan applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array, UInt8Array
from hiernorm.filters import call_filter, ids_of_array
from hiernorm.payload.conditions import BoundCondition, is_condition
from hiernorm.payload.keys import are_keys
from hiernorm.storage.payload import StatePayload
from hiernorm.storage.state import SegmentView, State
from hiernorm.storage.tombstones import pack


@dataclass(frozen=True, eq=False)
class Selection:
    """Which entries of one generation a search may return; ``Database.select`` makes it.

    Attributes
    ----------
    count : int
        The number of selected entries.
    generation : int
        The generation of the database that the selection is for.
    """

    generation: int
    count: int
    masks: list[UInt8Array | None]
    allowed: list[int]
    manifest_digest: str

    def __len__(self) -> int:
        return self.count


def select(state: State, where: Any) -> Selection:
    """Apply the condition ``where`` of ``Database.select``."""
    if isinstance(where, Selection):
        if where.generation != state.manifest.generation:
            raise ValueError(
                f"the selection is of generation {where.generation}, the database is at "
                f"{state.manifest.generation}: select again"
            )
        if where.manifest_digest != state.manifest.digest:
            raise ValueError("the selection is of another database: select again")
        return where
    find = _make_filter(state, where)
    masks: list[UInt8Array | None] = []
    allowed = []
    for view in state.views:
        chosen = find(view) & view.mask()
        allowed.append(int(np.count_nonzero(chosen)))
        masks.append(pack(chosen))
    return Selection(state.manifest.generation, sum(allowed), masks, allowed, state.manifest.digest)


def _make_filter(state: State, where: Any) -> Callable[[SegmentView], BoolArray]:
    payload = StatePayload(state)
    if isinstance(where, BoundCondition):
        return payload.find(where.where, where.columns)
    if is_condition(where):
        return payload.find(where, payload.columns)
    if callable(where):
        return lambda view: call_filter(where, view.segment.checked_ids())
    if are_keys(where):
        where = payload.ids_of(where, ignore_missing=True)
    wanted = ids_of_array(where, len(state), lambda: state.ids, "database")
    return lambda view: _find_ids(wanted, view)


def _find_ids(wanted: Int64Array, view: SegmentView) -> BoolArray:
    chosen = np.zeros(len(view.segment), np.bool_)
    positions = view.segment.find(wanted)
    chosen[positions[positions >= 0]] = True
    return chosen

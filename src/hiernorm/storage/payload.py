"""The payload of a generation: columns of entries, conditions on them, and string keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_ids
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, ID, KEY
from hiernorm.payload.columns import Column
from hiernorm.payload.conditions import compile_condition
from hiernorm.payload.keys import ABSENT, are_keys, as_keys, ids_of_keys
from hiernorm.payload.tables import named_columns, with_ids
from hiernorm.storage.state import SegmentView, State


class StatePayload:
    """The payload of the entries of one generation."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the database."""
        return self._state.manifest.columns

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._state.manifest.parameters.string_keys

    def gather(self, ids: Int64Array, names: Sequence[str] | None = None) -> Any:
        """The columns of ``ids`` as an Arrow table, in the order of ids.

        Raises
        ------
        KeyError
            Naming the first id that is not there.
        """
        arrow = import_extra("pyarrow", extra=EXTRA)
        columns = named_columns(self.columns, names)
        parts, places = [], np.full(len(ids), -1, np.int64)
        taken = 0
        for view in self._state.views:
            positions = self._state.positions(view, ids)
            found = np.flatnonzero(positions >= 0)
            if len(found):
                rows = arrow.array(positions[found])
                parts.append(_table(view, columns).take(rows))
                places[found] = taken + np.arange(len(found))
                taken += len(found)
        if (places < 0).any():
            raise KeyError(f"id {ids[int(np.argmax(places < 0))]} is not in the database")
        schema = arrow.schema([(column.name, column.arrow_type) for column in columns])
        whole = arrow.concat_tables(parts) if parts else schema.empty_table()
        return whole.take(arrow.array(places)).combine_chunks()

    def find(self, where: Any, columns: Sequence[Column]) -> Callable[[SegmentView], BoolArray]:
        """A function of a segment: which of its entries a condition on columns is true for."""
        choose = compile_condition(where, [Column(ID, "int64"), *columns])

        def find(view: SegmentView) -> BoolArray:
            return choose(with_ids(_table(view, columns), view.segment.checked_ids()))

        return find

    def ids_of(self, values: Any, *, ignore_missing: bool = False) -> Int64Array:
        """The ids that ``values`` stand for: ids, or keys of a database with string keys.

        Raises
        ------
        KeyError
            Naming the first key that no entry has, unless they are ignored: their id is -1.
        """
        if not are_keys(values):
            return as_ids(values)
        if not self.string_keys:
            raise TypeError(
                "ids are integers in this database, strings came: create one with string_keys=True"
            )
        keys = as_keys(values)
        ids = ids_of_keys(keys)
        # Another key may have the same id: it is the stored key that counts.
        found = np.flatnonzero(self._state.holds(ids))
        stored = self.keys_of(ids[found])
        right = found[[keys[at] == key for at, key in zip(found, stored, strict=True)]]
        known = np.full(len(ids), ABSENT, np.int64)
        known[right] = ids[right]
        if not ignore_missing and (known == ABSENT).any():
            raise KeyError(f"key {keys[int(np.argmax(known == ABSENT))]!r} is not in the database")
        return known

    def keys_of(self, ids: Int64Array) -> list[str]:
        """The string keys of ``ids``, which are there."""
        found: list[str] = self.gather(ids, [KEY]).column(KEY).to_pylist()
        return found


def _table(view: SegmentView, columns: Sequence[Column]) -> Any:
    """The columns of a segment; null where it has none."""
    if view.payload is not None:
        return view.payload.table(columns)
    arrow = import_extra("pyarrow", extra=EXTRA)
    nulls = [arrow.nulls(len(view.segment), column.arrow_type) for column in columns]
    return arrow.table(nulls, names=[column.name for column in columns])

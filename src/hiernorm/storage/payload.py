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
from hiernorm.payload.keys import are_keys, as_keys, ids_of_keys
from hiernorm.storage.state import SegmentView, State

ABSENT = -1
"""The id of a key that no entry has."""


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
        columns = self._named(names)
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

    def _named(self, names: Sequence[str] | None) -> list[Column]:
        if names is None:
            return list(self.columns)
        known = {column.name: column for column in self.columns}
        for name in names:
            if name not in known:
                there = ", ".join(known) or "none"
                raise ValueError(f"there is no column {name!r}; columns are {there}")
        return [known[name] for name in names]

    def find(self, where: Any) -> Callable[[SegmentView], BoolArray]:
        """A function of a segment: which of its entries a condition is true for."""
        choose = compile_condition(where, [Column(ID, "int64"), *self.columns])

        def find(view: SegmentView) -> BoolArray:
            return choose(with_ids(_table(view, self.columns), view.segment.ids))

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


def with_ids(table: Any, ids: Int64Array) -> Any:
    """The table with the column ``id`` in front, even if it has no other."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    if not table.column_names:
        return arrow.table({ID: ids})
    return table.add_column(0, ID, arrow.array(ids))


def payload_reader(state: State) -> StatePayload | None:
    """The payload of the hits of a search; None if the database has none."""
    return StatePayload(state) if state.manifest.columns else None


def _table(view: SegmentView, columns: Sequence[Column]) -> Any:
    """The columns of a segment; null where it has none."""
    if view.payload is not None:
        return view.payload.table(columns)
    arrow = import_extra("pyarrow", extra=EXTRA)
    nulls = [arrow.nulls(len(view.segment), column.arrow_type) for column in columns]
    return arrow.table(nulls, names=[column.name for column in columns])

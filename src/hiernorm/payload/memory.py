"""The payload of an index in memory: a table with a row per entry, that never changes.

Every change makes another one. So a search keeps the payload that it has, whatever a writer does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_ids
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, ID, KEY
from hiernorm.payload.columns import Column, agree, complete
from hiernorm.payload.conditions import compile_condition
from hiernorm.payload.keys import (
    ABSENT,
    are_keys,
    as_keys,
    ids_of_keys,
    refuse_collision,
    refuse_equal_ids,
)
from hiernorm.payload.tables import add_keys, named_columns, with_ids


class MemoryPayload:
    """Payload and string keys of the entries of an index.

    Rows of deleted entries stay until half of the rows are such: a search that runs meanwhile may
    still ask for them. Without columns there are no rows either.
    """

    def __init__(
        self,
        string_keys: bool,
        columns: tuple[Column, ...] = (),
        ids: Int64Array | None = None,
        alive: BoolArray | None = None,
        table: Any = None,
    ) -> None:
        self.string_keys = string_keys
        self.columns = columns
        self._ids = np.empty(0, np.int64) if ids is None else ids
        self._alive = np.empty(0, np.bool_) if alive is None else alive
        self._table = table

    @cached_property
    def _order(self) -> Int64Array:
        """Rows by id; of the same id the newest comes last."""
        return np.argsort(self._ids, kind="stable")

    def _rows_of(self, ids: Int64Array) -> Int64Array:
        """The newest row of every id, of a deleted entry too; -1 without one."""
        at = np.searchsorted(self._ids, ids, side="right", sorter=self._order) - 1
        rows = np.full(len(ids), -1, np.int64)
        if len(self._ids):
            near = self._order[np.maximum(at, 0)]
            found = (at >= 0) & (self._ids[near] == ids)
            rows[found] = near[found]
        return rows

    def inserted(
        self,
        ids: Int64Array,
        table: Any,
        keys: list[str] | None,
        before: Int64Array,
        replace: bool,
    ) -> MemoryPayload:
        """With new entries, or other payload of old ones; ``before`` are the ids so far."""
        if keys is not None:
            table = add_keys(table, keys)
            self._check_keys(ids, keys, replace)
        if table is None and not self.columns:
            return self
        arrow = import_extra("pyarrow", extra=EXTRA)
        columns = self.columns
        old = self
        if not columns:  # the first payload: entries without it have rows from now on
            old = MemoryPayload(self.string_keys, (), before, np.ones(len(before), np.bool_))
        if table is not None:
            columns, table = agree(columns, table)
        parts = [complete(columns, old._table, len(old._ids)), complete(columns, table, len(ids))]
        alive = np.concatenate([old._mask_without(ids), np.ones(len(ids), np.bool_)])
        return MemoryPayload(
            self.string_keys,
            columns,
            np.concatenate([old._ids, ids]),
            alive,
            arrow.concat_tables(parts),
        )._tidied()

    def removed(self, ids: Int64Array) -> MemoryPayload:
        """Without the entries of ``ids``."""
        if not self.columns:
            return self
        alive = self._mask_without(ids)
        return MemoryPayload(
            self.string_keys, self.columns, self._ids, alive, self._table
        )._tidied()

    def _mask_without(self, ids: Int64Array) -> BoolArray:
        alive = self._alive.copy()
        rows = self._rows_of(ids)
        alive[rows[rows >= 0]] = False
        return alive

    def _tidied(self) -> MemoryPayload:
        if 2 * np.count_nonzero(self._alive) >= len(self._alive):
            return self
        arrow = import_extra("pyarrow", extra=EXTRA)
        kept = np.flatnonzero(self._alive)
        table = self._table.take(arrow.array(kept)).combine_chunks()
        alive = np.ones(len(kept), np.bool_)
        return MemoryPayload(self.string_keys, self.columns, self._ids[kept], alive, table)

    def _check_keys(self, ids: Int64Array, keys: Sequence[str], replace: bool) -> None:
        rows = self._rows_of(ids)
        known = np.flatnonzero(rows >= 0)
        known = known[self._alive[rows[known]]]
        for at, key in zip(known.tolist(), self._keys_in(rows[known]), strict=True):
            refuse_collision(keys[at], key)
            if not replace:
                raise ValueError(f"key {key!r} is in the index already: upsert replaces it")
        refuse_equal_ids(ids, keys)
        if len(set(keys)) < len(keys):
            again = next(key for at, key in enumerate(keys) if key in keys[:at])
            raise ValueError(f"key {again!r} is given twice")

    def _keys_in(self, rows: Int64Array) -> list[str]:
        if not len(rows):
            return []
        arrow = import_extra("pyarrow", extra=EXTRA)
        found: list[str] = self._table.column(KEY).take(arrow.array(rows)).to_pylist()
        return found

    def gather(self, ids: Int64Array, names: Sequence[str] | None = None) -> Any:
        """The columns of ``ids`` as an Arrow table, in the order of ids; null without a row."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        columns = named_columns(self.columns, names)
        rows = self._rows_of(ids)
        chosen = arrow.array(rows, mask=rows < 0)
        table = complete(columns, self._table, len(self._ids))
        return table.take(chosen).combine_chunks()

    def find(self, where: Any, all_ids: Int64Array) -> Int64Array:
        """The ids for which a condition is true; ``all_ids`` are those of the index."""
        choose = compile_condition(where, [Column(ID, "int64"), *self.columns])
        if not self.columns:
            return all_ids[choose(with_ids(None, all_ids))]
        chosen = choose(with_ids(self._table, self._ids))
        return self._ids[chosen & self._alive]

    def ids_of(self, values: Any, *, ignore_missing: bool = False) -> Int64Array:
        """The ids that ``values`` stand for: ids, or string keys; -1 for an unknown key."""
        if not are_keys(values):
            return as_ids(values)
        if not self.string_keys:
            raise TypeError("ids are integers in this index, strings came: see string_keys=True")
        keys = as_keys(values)
        rows = self._rows_of(ids_of_keys(keys))
        at = np.flatnonzero(rows >= 0)
        at = at[self._alive[rows[at]]]
        stored = self._keys_in(rows[at])
        known = np.full(len(keys), ABSENT, np.int64)
        for place, key in zip(at.tolist(), stored, strict=True):
            if keys[place] == key:
                known[place] = self._ids[rows[place]]
        if not ignore_missing and (known == ABSENT).any():
            raise KeyError(f"key {keys[int(np.argmax(known == ABSENT))]!r} is not in the index")
        return known

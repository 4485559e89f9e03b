"""Answers as tables: a row per hit, with the payload of the entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, ID, KEY, PayloadReader
from hiernorm.payload.columns import Column
from hiernorm.payload.keys import ABSENT
from hiernorm.payload.tables import with_ids

NO_HIT = -1


class EntryPayload(PayloadReader, Protocol):
    """The payload of all entries of a container."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with that of the string keys."""

    def gather(self, ids: Int64Array, names: Sequence[str] | None = None) -> Any:
        """The columns of ``ids``, or those with these names, as an Arrow table."""

    def ids_of(self, values: Any, *, ignore_missing: bool = False) -> Int64Array:
        """The ids that ids or string keys stand for."""


class KeptPayload:
    """The payload of the hits of one answer, apart from the container that they came from."""

    def __init__(self, reader: PayloadReader, ids: Int64Array) -> None:
        self.string_keys = reader.string_keys
        self._ids = np.unique(ids[ids != NO_HIT])
        self._table = reader.gather(self._ids)

    def gather(self, ids: Int64Array) -> Any:
        """The columns of ``ids``, which are among the hits."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        return self._table.take(arrow.array(np.searchsorted(self._ids, ids)))


def keys_of(reader: PayloadReader | None, ids: Int64Array) -> npt.NDArray[np.object_]:
    """The string keys of ``ids`` in an array of their shape; None where there is no hit."""
    if reader is None or not reader.string_keys:
        raise AttributeError("entries have ids and no string keys: see string_keys=True")
    keys = np.full(ids.shape, None, dtype=object)
    found = ids != NO_HIT
    keys[found] = reader.gather(ids[found]).column(KEY).to_pylist()
    return keys


def holds_key(reader: EntryPayload, key: str) -> bool:
    """Whether an entry has this string key."""
    return reader.string_keys and bool(reader.ids_of([key], ignore_missing=True)[0] != ABSENT)


def visible_columns(reader: EntryPayload) -> dict[str, str]:
    """Name to type of the columns, without that of the string keys."""
    hidden = {KEY} if reader.string_keys else set()
    return {column.name: column.type for column in reader.columns if column.name not in hidden}


def payload_of_hits(reader: EntryPayload) -> EntryPayload | None:
    """What an answer keeps to show payload: nothing if there is none."""
    return reader if reader.columns else None


def table_of(reader: EntryPayload, ids: Int64Array, names: Sequence[str] | None) -> Any:
    """The table of ``Database.payload``: ids, string keys, and the columns with these names."""
    if names is not None and reader.string_keys and KEY not in names:
        names = [KEY, *names]
    return with_ids(reader.gather(ids, names), ids)


def hits_table(
    query: Int64Array,
    rank: Int64Array,
    ids: Int64Array,
    scores: Float64Array,
    distances: Float64Array | None,
    reader: PayloadReader | None,
) -> Any:
    """An Arrow table with a row per hit; arrays ``(n,)``, places without a hit are left out.

    A payload column with the name of one of ours comes as ``payload.<name>``.
    """
    arrow = import_extra("pyarrow", extra=EXTRA)
    found = ids != NO_HIT
    columns: dict[str, Any] = {
        "query": query[found],
        "rank": rank[found],
        ID: ids[found],
        "score": scores[found],
    }
    if distances is not None:
        columns["distance"] = distances[found]
    if reader is not None:
        payload = reader.gather(ids[found])
        for name, values in zip(payload.column_names, payload.columns, strict=True):
            columns[f"payload.{name}" if name in columns else name] = values
    return arrow.table(columns)

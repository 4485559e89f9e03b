"""Answers as tables: a row per hit, with the payload of the entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, ID, KEY, PayloadReader

NO_HIT = -1


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

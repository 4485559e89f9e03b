"""The payload of a new segment, gathered from older segments and from new entries by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.payload_file import PayloadFile, write_payload

PayloadPiece = tuple[int, Any]
"""A number of entries, and the Arrow table of their payload; None if they have none."""
PayloadSource = Any
"""The payload of a segment: its file, an Arrow table of its columns, or None."""


class PayloadGatherer:
    """Knows where the payload of every entry is, and writes that of a new segment.

    Sources follow one another. An entry is known by its id and by its place in all of them.
    """

    def __init__(self) -> None:
        self._sources: list[tuple[int, Any]] = []  # length, and a PayloadFile, a table or None
        self._ids: list[Int64Array] = []
        self._places: list[Int64Array] = []
        self._length = 0

    def add_segment(self, ids: Int64Array, payload: PayloadSource, mask: BoolArray) -> None:
        """Add the entries of a segment that ``mask`` keeps: its ids and payload."""
        positions = np.flatnonzero(mask)
        self._ids.append(ids[positions])
        self._append(len(mask), payload, positions)

    def add_entries(self, ids: Int64Array, payload: Sequence[PayloadPiece]) -> None:
        """Add new entries; without payload if there are no pieces."""
        self._ids.append(ids)
        for count, table in payload or [(len(ids), None)]:
            self._append(count, table, np.arange(count))

    def _append(self, length: int, source: Any, positions: Int64Array) -> None:
        self._sources.append((length, source))
        self._places.append(self._length + positions)
        self._length += length

    def among(self, columns: Sequence[Column]) -> list[Column]:
        """Those of ``columns`` that one of the sources has."""
        there = {name for _, source in self._sources for name in _names(source)}
        return [column for column in columns if column.name in there]

    def write(self, path: Path, columns: Sequence[Column], ids: Int64Array) -> FileRecord:
        """Write the payload of ``ids``, in their order, to a new file."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        known = np.concatenate(self._ids)
        order = np.argsort(known, kind="stable")
        places = np.concatenate(self._places)[order[np.searchsorted(known, ids, sorter=order)]]
        indices = arrow.array(places)

        def read(column: Column) -> Any:
            chunks = [_array(source, column, length) for length, source in self._sources]
            taken = arrow.chunked_array(chunks, column.arrow_type).take(indices)
            return taken.chunk(0) if taken.num_chunks == 1 else taken.combine_chunks()

        return write_payload(path, columns, len(ids), read)


def _names(source: Any) -> Sequence[str]:
    if source is None:
        return ()
    return list(source.columns) if isinstance(source, PayloadFile) else source.column_names


def _array(source: Any, column: Column, length: int) -> Any:
    if column.name not in _names(source):
        arrow = import_extra("pyarrow", extra=EXTRA)
        return arrow.nulls(length, column.arrow_type)
    if isinstance(source, PayloadFile):
        return source.array(column.name)
    values = source.column(column.name)
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()

"""The payload of a new segment, gathered from older segments and from new entries by their ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.payload_file import write_payload

PayloadPiece = tuple[int, Any]
"""A number of entries, and the Arrow table of their payload; None if they have none."""


class PayloadSource(Protocol):
    """The payload of a segment: its file, or what is intact of it."""

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name."""

    def array(self, name: str) -> Any:
        """The Arrow array of a column."""


@dataclass(frozen=True)
class _Source:
    """Entries with payload: where ids are (-1: not here), which columns there are, and these."""

    find: Callable[[Int64Array], Int64Array]
    names: Sequence[str]
    column: Callable[[Column], Any]


class PayloadGatherer:
    """Knows where the payload of every entry is, and writes that of a new segment.

    Memory does not grow with the number of entries in older segments: their ids are looked up in
    the tables of their files, and one column of one new segment is in memory at a time.
    """

    def __init__(self) -> None:
        self._sources: list[_Source] = []

    def add_segment(
        self,
        find: Callable[[Int64Array], Int64Array],
        payload: PayloadSource | None,
        mask: BoolArray,
    ) -> None:
        """Add the entries of a segment that ``mask`` keeps; ``find`` tells the positions of ids."""
        if payload is None:
            return

        def find_kept(ids: Int64Array) -> Int64Array:
            positions = find(ids)
            found = np.flatnonzero(positions >= 0)
            positions[found[~mask[positions[found]]]] = -1
            return positions

        self._sources.append(
            _Source(find_kept, list(payload.columns), lambda column: payload.array(column.name))
        )

    def add_entries(self, ids: Int64Array, payload: Sequence[PayloadPiece]) -> None:
        """Add new entries; pieces of their payload follow one another as the ids do."""
        names = {name for _, table in payload if table is not None for name in table.column_names}
        if not names:
            return
        arrow = import_extra("pyarrow", extra=EXTRA)
        order = np.argsort(ids, kind="stable")

        def find(wanted: Int64Array) -> Int64Array:
            at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
            return np.where(ids[at] == wanted, at, -1)

        def column(column: Column) -> Any:
            kind = column.arrow_type
            chunks: list[Any] = []
            for count, table in payload:
                there = table is not None and column.name in table.column_names
                chunks += table.column(column.name).chunks if there else [arrow.nulls(count, kind)]
            return arrow.chunked_array(chunks, kind)

        self._sources.append(_Source(find, sorted(names), column))

    def among(self, columns: Sequence[Column]) -> list[Column]:
        """Those of ``columns`` that one of the sources has."""
        there = {name for source in self._sources for name in source.names}
        return [column for column in columns if column.name in there]

    def write(self, path: Path, columns: Sequence[Column], ids: Int64Array) -> FileRecord:
        """Write the payload of ``ids``, in their order, to a new file."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        places = np.full(len(ids), -1, np.int64)
        taken, parts = 0, []
        for source in self._sources:
            positions = source.find(ids)
            at = np.flatnonzero(positions >= 0)
            places[at] = taken + np.arange(len(at))
            taken += len(at)
            parts.append((source, arrow.array(positions[at])))
        indices = arrow.array(places, mask=places < 0)

        def read(column: Column) -> Any:
            kind = column.arrow_type
            chunks = [
                source.column(column).take(positions)
                if column.name in source.names
                else arrow.nulls(len(positions), kind)
                for source, positions in parts
            ]
            flat = [
                part
                for chunk in chunks
                for part in (chunk.chunks if isinstance(chunk, arrow.ChunkedArray) else [chunk])
            ]
            whole = arrow.concat_arrays(flat) if flat else arrow.nulls(0, kind)
            return whole.take(indices)

        return write_payload(path, columns, len(ids), read)

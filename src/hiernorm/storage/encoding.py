"""Entries to codes, codes to a segment file, a chunk at a time: memory does not grow with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm import _core
from hiernorm.array_types import AnyArray, Float32Array, Int64Array, UInt32Array
from hiernorm.fitting import choose_encoding, majors_of, rotation_of
from hiernorm.progress import AdvanceCallback
from hiernorm.settings import IndexSettings
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.tensors import TensorWriter

FORMAT = "hiernorm segment"
VERSION = 1
PART = 8192
"""Rows that are gathered and rotated at a time."""
LEAST_CODED = 256
"""Segments of fewer entries have no codes: scoring them all is as fast."""


def write_segment(
    path: Path,
    settings: IndexSettings,
    ids: Int64Array,
    rows: Float32Array,
    progress: AdvanceCallback | None = None,
    *,
    encoding: _core.Encoding | None = None,
    describe: Callable[[dict[str, Any]], dict[str, str]] | None = None,
    more: Mapping[str, tuple[str, AnyArray]] | None = None,
) -> FileRecord:
    """Write the entries, which have been checked, to a new segment file.

    Parameters
    ----------
    path
        Of the file, which must not exist.
    ids, rows
        ``(n,)`` and ``(n, d)``; may be mapped.
    progress
        Called with the number of entries written since the last call.
    encoding
        To encode the entries with; by default one is fitted to them.
    describe
        For the file of an index: takes the description of the segment, returns more metadata. A
        segment that has no ``encoding`` then gets no codes.
    more
        Tensors that follow those of the segment: name to dtype and values.
    """
    coded = len(ids) >= LEAST_CODED and (describe is None or encoding is not None)
    coder = _Coder(settings, ids, rows, encoding) if coded else None
    order = None if coder is None else coder.order
    placed = ids if order is None else ids[order]
    by_id = np.argsort(placed, kind="stable")
    n, d = rows.shape
    layout = _core.segment_tensors(
        d, n, None if coder is None else coder.encoding, coder is not None and coder.has_cones
    )
    further = more or {}
    tensors = {name: (dtype, shape) for name, dtype, shape, _ in layout}
    tensors |= {name: (dtype, values.shape) for name, (dtype, values) in further.items()}
    description = {
        "format": FORMAT,
        "version": VERSION,
        "entries": n,
        "dim": d,
        "metric": settings.metric,
        "fit": None if coder is None else coder.encoding.state(),
    }
    noted = {} if describe is None else describe(description)
    metadata = {"hiernorm": json.dumps(description, sort_keys=True), **noted}
    writer = TensorWriter(path, tensors, metadata, checksums=True)
    try:
        writer.write("sorted_ids", placed[by_id])
        writer.write("sorted_positions", by_id)
        writer.write("ids", placed)
        for first in range(0, n, _core.CHUNK_ENTRIES):
            entries = min(_core.CHUNK_ENTRIES, n - first)
            for at, part in _parts(rows, order, first, entries):
                writer.write("rows", part)
                if coder is not None:
                    coder.encode(placed[at : at + len(part)], part)
                if progress is not None:
                    progress(len(part))
            if coder is not None:
                coder.write_chunk(writer, first // _core.CHUNK_ENTRIES, entries)
        if coder is not None:
            coder.write_rest(writer)
        for name, (_, values) in further.items():
            writer.write(name, values)
        written = writer.finish()
    finally:
        writer.close()
        if coder is not None:
            coder.close()
    return FileRecord(path.name, written.size, written.header_digest)


def _parts(
    rows: Float32Array, order: UInt32Array | None, first: int, entries: int
) -> Iterator[tuple[int, Float32Array]]:
    """Positions and rows, in the order of the file."""
    for at in range(first, first + entries, PART):
        place = slice(at, min(at + PART, first + entries))
        yield at, np.ascontiguousarray(rows[place] if order is None else rows[order[place]])


class _Coder:
    """The encoding of a segment, the order of its entries, and their codes."""

    def __init__(
        self,
        settings: IndexSettings,
        ids: Int64Array,
        rows: Float32Array,
        encoding: _core.Encoding | None,
    ) -> None:
        self.encoding = encoding or choose_encoding(
            rows,
            settings.major,
            rotate=settings.rotates,
            metric=settings.metric,
            cells=settings.groups,
        )
        self._rotation = rotation_of(self.encoding)
        core = settings.make_core()
        core.set_encoding(self.encoding)
        majors = majors_of(self.encoding, self._rotation, rows)
        self._addition = _core.Addition(core, rows, majors, ids, checked=True)
        self.order: UInt32Array | None = self._addition.order
        self.has_cones = self.order is not None and len(ids) >= _core.BLOCK_ENTRIES

    def encode(self, ids: Int64Array, rows: Float32Array) -> None:
        """Make the codes of the next entries."""
        views = None if self._rotation is None else self._rotation.apply(rows)
        self._addition.write(rows, ids, views)

    def write_chunk(self, writer: TensorWriter, chunk: int, entries: int) -> None:
        """Write the codes of a chunk and forget them."""
        for name, values in self._addition.take_chunk(chunk, entries).items():
            writer.write(name, values)

    def write_rest(self, writer: TensorWriter) -> None:
        """Write what is known when all entries have been coded."""
        if self.has_cones:
            for name, values in self._addition.cones().items():
                writer.write(name, values)
        if self._rotation is not None:
            writer.write("rotation", self._rotation.matrix)

    def close(self) -> None:
        """Forget the entries."""
        self._addition.close()

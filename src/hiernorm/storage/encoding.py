"""Entries to codes, codes to a segment file, a chunk at a time: memory does not grow with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array, UInt32Array
from hiernorm.fitting import choose_fit, majors_of, rotation_of
from hiernorm.progress import AdvanceCallback
from hiernorm.settings import IndexSettings
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.tensors import TensorWriter

FORMAT = "hiernorm segment"
VERSION = 1
CHUNK = 1 << 16
"""Entries whose codes are in memory at a time: a chunk of the core."""
PART = 8192
"""Rows that are gathered and rotated at a time."""
LEAST_CODED = 256
"""Segments of fewer entries have no codes: scoring them all is as fast."""
BLOCK, GROUP, TILE, STAGE_BYTES = 16, 4, 2048, 64
CONE_ENTRIES = (BLOCK, BLOCK**2, BLOCK**3)
"""Entries under one cone, level by level."""


def write_segment(
    path: Path,
    settings: IndexSettings,
    ids: Int64Array,
    rows: Float32Array,
    progress: AdvanceCallback | None = None,
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
    """
    coder = _Coder(settings, ids, rows) if len(ids) >= LEAST_CODED else None
    order = None if coder is None else coder.order
    placed = ids if order is None else ids[order]
    by_id = np.argsort(placed, kind="stable")
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {} if coder is None else coder.tensors()
    n, d = rows.shape
    tensors |= {
        "sorted_ids": ("I64", (n,)),
        "sorted_positions": ("U32", (n,)),
        "ids": ("I64", (n,)),
        "rows": ("F32", (n, d)),
    }
    description = {
        "format": FORMAT,
        "version": VERSION,
        "entries": n,
        "dim": d,
        "metric": settings.metric,
        "fit": None if coder is None else coder.fit.state(),
    }
    writer = TensorWriter(path, tensors, {"hiernorm": json.dumps(description, sort_keys=True)})
    try:
        writer.write("sorted_ids", placed[by_id])
        writer.write("sorted_positions", by_id)
        writer.write("ids", placed)
        for first in range(0, n, CHUNK):
            entries = min(CHUNK, n - first)
            for at, part in _parts(rows, order, first, entries):
                writer.write("rows", part)
                if coder is not None:
                    coder.encode(at, placed[at : at + len(part)], part, first + entries)
                if progress is not None:
                    progress(len(part))
            if coder is not None:
                coder.write_chunk(writer, first // CHUNK, entries)
        if coder is not None:
            coder.write_rest(writer)
        written = writer.finish()
    finally:
        writer.close()
    return FileRecord(path.name, written.size, written.header_digest)


def _parts(
    rows: Float32Array, order: UInt32Array | None, first: int, entries: int
) -> Iterator[tuple[int, Float32Array]]:
    """Positions and rows, in the order of the file."""
    for at in range(first, first + entries, PART):
        place = slice(at, min(at + PART, first + entries))
        yield at, np.ascontiguousarray(rows[place] if order is None else rows[order[place]])


class _Coder:
    """The fit of a segment, the order of its entries, and their codes."""

    def __init__(self, settings: IndexSettings, ids: Int64Array, rows: Float32Array) -> None:
        self.fit = choose_fit(rows, settings.major, rotate=settings.rotates, metric=settings.metric)
        self._rotation = rotation_of(self.fit)
        self._core = settings.make_core()
        self._core.set_fit(self.fit)
        self._entries = len(ids)
        self.order: UInt32Array | None = self._core.group(
            rows, majors_of(self.fit, self._rotation, rows), ids
        )
        self._has_cones = self.order is not None and self._entries >= BLOCK

    def tensors(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """What is written beside ids and rows. Stages first: something must follow them."""
        state = self.fit.state()  # with the level of l2, which the major here counts too
        n, d, major = self._entries, state["dim"], state["major"]
        slots = -(-(major + int(self.fit.entry_tails)) // GROUP) * GROUP
        blocks = -(-n // BLOCK)
        found: dict[str, tuple[str, tuple[int, ...]]] = {
            "major_codes": ("U8", (blocks, slots // GROUP, BLOCK, GROUP))
        }
        for stage, size in enumerate(stage_sizes(d, major)):
            found[f"minor_codes.{stage}"] = ("U8", (n, size))
        found["norms"] = ("F64", (-(-n // TILE), 8))
        if self._has_cones:
            slots = cone_slots(major + int(self.fit.entry_tails))
            for entries in CONE_ENTRIES:
                blocks = -(-n // (entries * BLOCK))
                found[f"cones_{entries}"] = ("U8", (blocks, slots // GROUP, BLOCK, GROUP))
            found["cone_norms"] = ("F64", (3,))
        if self._rotation is not None:
            found["rotation"] = ("F32", self._rotation.matrix.shape)
        return found

    def encode(self, at: int, ids: Int64Array, rows: Float32Array, chunk_end: int) -> None:
        """Make the codes of the entries at position ``at`` and behind."""
        views: Float64Array | None = None
        if self._rotation is not None:
            views = self._rotation.apply(rows)
        self._core.write(at, rows, ids, views, chunk_end - at - len(ids))

    def write_chunk(self, writer: TensorWriter, chunk: int, entries: int) -> None:
        """Write the codes of a chunk and forget them."""
        major_codes, stages, norms = _core.take_chunk(self._core, chunk, entries)
        writer.write("major_codes", major_codes)
        for stage, codes in enumerate(stages):
            writer.write(f"minor_codes.{stage}", codes)
        writer.write("norms", norms)

    def write_rest(self, writer: TensorWriter) -> None:
        """Write what is known when all entries have been coded."""
        if self._has_cones:
            levels, norms = _core.written_cones(self._core, self._entries)
            for entries, cones in zip(CONE_ENTRIES, levels, strict=True):
                writer.write(f"cones_{entries}", cones)
            writer.write("cone_norms", norms)
        if self._rotation is not None:
            writer.write("rotation", self._rotation.matrix)


def cone_slots(dims: int) -> int:
    """Slots of a cone: its direction, and cosine and sine of its angle in pairs of their own."""
    return -(-(-(-dims // 2) * 2 + 4) // GROUP) * GROUP


def stage_sizes(dim: int, major: int) -> list[int]:
    """Bytes of an entry in each stage of the minor codes: 63 codes and a norm, the rest last."""
    sizes = []
    left = dim - major
    while left > STAGE_BYTES:
        sizes.append(STAGE_BYTES)
        left -= STAGE_BYTES - 1
    return [*sizes, left]

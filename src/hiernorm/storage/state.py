"""The state of an opened generation: its segments, and which of their entries are alive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array, UInt8Array
from hiernorm.storage.block_checks import require_intact_file
from hiernorm.storage.checksums import Check, weakest
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.manifest import Manifest, SegmentRecord, read_manifest
from hiernorm.storage.payload_file import PayloadFile
from hiernorm.storage.segment import Segment, map_file
from hiernorm.storage.tombstones import read_tombstones, unpack


@dataclass(frozen=True)
class SegmentView:
    """A segment and its entries that belong to a generation; all of them if ``bits`` is None."""

    segment: Segment
    record: SegmentRecord
    bits: UInt8Array | None
    payload: PayloadFile | None = None

    @property
    def live(self) -> int:
        """The number of live entries."""
        return self.record.live

    def mask(self) -> BoolArray:
        """Which entries are alive, ``(n,)``."""
        entries = len(self.segment)
        return np.ones(entries, np.bool_) if self.bits is None else unpack(self.bits, entries)

    def live_ids(self) -> Int64Array:
        """Ids of the live entries, in the order of the file."""
        ids = self.segment.checked_ids()
        return ids if self.bits is None else ids[self.mask()]


class State:
    """The segments of one generation; it never changes, whatever a writer does."""

    def __init__(self, manifest: Manifest, views: tuple[SegmentView, ...]) -> None:
        self.manifest = manifest
        self.views = views
        self.masks = [view.bits for view in views]
        self.allowed = [view.live for view in views]

    def __len__(self) -> int:
        return sum(self.allowed)

    @cached_property
    def indexes(self) -> list[_core.SegmentIndex]:
        """The native indexes of the segments."""
        return [view.segment.index for view in self.views]

    @cached_property
    def checked(self) -> Check:
        """What reading checks in all segments."""
        return weakest(view.segment.checked for view in self.views)

    def damage(self) -> DamagedError:
        """The error for damage that a search has met."""
        found = [text for view in self.views for text in view.segment.file_checks.found()]
        return DamagedError("; ".join(found))

    @cached_property
    def ids(self) -> Int64Array:
        """All ids in ascending order."""
        return np.sort(np.concatenate([np.empty(0, np.int64), *(v.live_ids() for v in self.views)]))

    def holds(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are there."""
        found = np.zeros(len(ids), np.bool_)
        for view in self.views:
            found |= self.positions(view, ids) >= 0
        return found

    def rows_of(self, ids: Int64Array) -> Float32Array:
        """The rows of ``ids``; KeyError names the first unknown id."""
        rows = np.empty((len(ids), self.manifest.parameters.dim), np.float32)
        missing = np.ones(len(ids), np.bool_)
        for view in self.views:
            here = self.positions(view, ids)
            found = here >= 0
            rows[found] = view.segment.rows_at(here[found])
            missing &= ~found
        if missing.any():
            raise KeyError(f"id {ids[int(np.argmax(missing))]} is not in the database")
        return rows

    @staticmethod
    def positions(view: SegmentView, ids: Int64Array) -> Int64Array:
        """Positions of ``ids`` in a segment; -1 for unknown and deleted ids."""
        positions = view.segment.find(ids)
        if view.bits is not None:
            found = np.flatnonzero(positions >= 0)
            at = positions[found]
            dead = (view.bits[at // 8] >> (at % 8).astype(np.uint8) & 1) == 0
            positions[found[dead]] = -1
        return positions


def open_view(
    folder: Path,
    record: SegmentRecord,
    manifest: Manifest,
    like: _core.Index,
    known: dict[str, SegmentView],
    check: Check = "touched",
) -> SegmentView:
    """The view of a record; files that are open already are used again."""
    before = known.get(record.data.file)
    if before is not None and before.segment.record == record.data:
        segment = before.segment
    else:
        segment = Segment(folder, record.data, manifest.parameters, like, check)
    if len(segment) != record.entries:
        raise DamagedError(
            f"{segment.file.path} has {len(segment)} entries, the manifest says {record.entries}"
        )
    payload = None
    if record.payload is not None:
        if before is not None and before.record.payload == record.payload:
            payload = before.payload
        else:
            payload = PayloadFile(map_file(folder, record.payload), record.entries)
            if check == "all":
                require_intact_file(payload.file)
    if record.tombstones is None:
        if record.live != record.entries:
            raise DamagedError(f"{segment.file.path} lacks the file of its deleted entries")
        return SegmentView(segment, record, None, payload)
    file = map_file(folder, record.tombstones)
    bits = read_tombstones(file, record.entries, record.live)
    return SegmentView(segment, record, bits, payload)


def open_state(
    folder: Path, like: _core.Index, previous: State | None = None, check: Check = "touched"
) -> State:
    """Open the newest generation.

    A writer may replace it and remove its files after the manifest was read and before the files
    are mapped. Then the newer manifest is used.
    """
    manifest = read_manifest(folder)
    while True:
        try:
            return map_state(folder, manifest, like, previous, check)
        except FileNotFoundError as error:
            newer = read_manifest(folder)
            if newer == manifest:
                raise DamagedError(
                    f"{error.filename} is missing: restore the database from a snapshot"
                ) from None
            manifest = newer


def map_state(
    folder: Path,
    manifest: Manifest,
    like: _core.Index,
    previous: State | None = None,
    check: Check = "touched",
) -> State:
    """Map the files of ``manifest``; FileNotFoundError if one of them is gone."""
    if previous is not None and manifest == previous.manifest:
        return previous
    known = {} if previous is None else {v.record.data.file: v for v in previous.views}
    views = tuple(open_view(folder, r, manifest, like, known, check) for r in manifest.segments)
    return State(manifest, views)

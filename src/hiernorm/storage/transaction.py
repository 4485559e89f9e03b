"""A transaction: it writes new files, replaces the manifest, then removes old files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hiernorm import _core, _files
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.progress import AdvanceCallback
from hiernorm.settings import IndexSettings
from hiernorm.storage.block_checks import require_intact_file
from hiernorm.storage.encoding import write_segment
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import PREPARED, SegmentRecord, is_ours, new_identity
from hiernorm.storage.payload_file import PayloadFile
from hiernorm.storage.payload_gatherer import PayloadGatherer, PayloadPiece, PayloadSource
from hiernorm.storage.salvage import IntactEntries, LostEntries, find_intact
from hiernorm.storage.segment import Segment, map_file
from hiernorm.storage.spill_buffer import SpillBuffer
from hiernorm.storage.state import SegmentView, State
from hiernorm.storage.tombstones import pack, write_tombstones

SEGMENT_VALUES = 1 << 24
"""Values in the majors of one segment: 1,048,576 entries for a major of 16."""
MERGE_FACTOR = 2
"""A segment with fewer than this many times the new entries is merged with them."""
PIECE = 1 << 16
"""Entries of an old segment that are read at a time."""


class PendingSegment:
    """A segment and the entries that the transaction deletes from it."""

    def __init__(self, view: SegmentView) -> None:
        self.view = view
        self.live = view.live
        self.mask: BoolArray | None = None
        self._proved: IntactEntries | None = None  # once the intact entries are chosen

    def keep_intact(self) -> LostEntries:
        """Delete the entries that cannot be proved to be what was written; returns them."""
        self._proved, lost = find_intact(self.view, self.current_mask())
        self.mask = self._proved.mask
        self.live = int(np.count_nonzero(self.mask))
        return lost

    @property
    def ids(self) -> Int64Array:
        """The ids of all entries ``(n,)``, dead or alive, as far as they are known."""
        return self.view.segment.ids if self._proved is None else self._proved.ids

    def find(self, ids: Int64Array) -> Int64Array:
        """Positions of ``ids`` ``(m,)``, dead or alive; -1 where an id is not in this segment."""
        return self.view.segment.find(ids) if self._proved is None else self._proved.find(ids)

    @property
    def payload(self) -> PayloadSource | None:
        """The payload of all entries."""
        return self.view.payload if self._proved is None else self._proved.payload

    def remove(self, ids: Int64Array) -> BoolArray:
        """Delete the live entries with these ids; returns which ids were found."""
        positions = State.positions(self.view, ids)
        found = positions >= 0
        if self.mask is not None:
            found[found] = self.mask[positions[found]]
        if found.any():
            if self.mask is None:
                self.mask = self.view.mask()
            self.mask[positions[found]] = False
            self.live -= int(found.sum())
        return found

    def holds(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are live entries of the segment."""
        positions = State.positions(self.view, ids)
        found = positions >= 0
        if self.mask is not None:
            found[found] = self.mask[positions[found]]
        return found

    def current_mask(self) -> BoolArray:
        """Which entries are alive, ``(n,)``."""
        return self.view.mask() if self.mask is None else self.mask

    def pieces(self) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Ids and rows of the live entries, in pieces.

        They and the payload get new digests where they go, so they are compared with those they
        came with. A mismatch raises DamagedError.
        """
        segment = self.view.segment
        if self._proved is None:
            segment.require_intact("ids", "rows")
            if self.view.payload is not None:
                require_intact_file(self.view.payload.file)
        ids, mask = self.ids, self.current_mask()
        for first in range(0, len(segment), PIECE):
            part = slice(first, first + PIECE)
            keep = mask[part]
            if keep.all():
                yield ids[part], segment.rows[part]
            elif keep.any():
                yield ids[part][keep], segment.rows[part][keep]


class Transaction:
    """Changes that become visible together, or not at all."""

    def __init__(
        self,
        folder: Path,
        base: State,
        settings: IndexSettings,
        like: _core.Index,
        lock: WriterLock,
    ) -> None:
        self._folder = folder
        self.lock = lock
        self.base = base
        self._settings = settings
        self._like = like
        self._generation = base.manifest.generation + 1
        self._files = 0
        self.parts = [PendingSegment(view) for view in base.views]
        self.next_id = base.manifest.next_id
        self.columns = base.manifest.columns
        self.most_entries = max(1, SEGMENT_VALUES // (settings.major or min(settings.dim, 64)))
        remove_leftovers(folder, base)

    def _new_path(self, kind: str) -> Path:
        self.lock.require_held()  # a forked child would take the names of its parent's files
        self._files += 1
        return self._folder / f"{kind}-{self._generation:08d}-{self._files:04d}.safetensors"

    def find(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are in the database with the changes so far."""
        found = np.zeros(len(ids), np.bool_)
        for part in self.parts:
            found |= part.holds(ids)
        return found

    def remove(self, ids: Int64Array) -> BoolArray:
        """Delete the entries with these ids; returns which ids were found."""
        found = np.zeros(len(ids), np.bool_)
        for part in self.parts:
            found |= part.remove(ids)
        return found

    def insert(
        self,
        ids: Int64Array,
        rows: Float32Array,
        payload: Sequence[PayloadPiece] = (),
        progress: AdvanceCallback | None = None,
    ) -> None:
        """Add entries with new ids, checked and no more than ``most_entries``, as one segment.

        Pieces of ``payload`` follow one another as the entries do; their columns are among
        ``columns``.

        Small segments are merged with the new entries, so that there are never more than a few. An
        entry is rewritten at most about log2(n) times.
        """
        merged = []
        total = len(ids)
        while (
            self.parts
            and self.parts[-1].live < MERGE_FACTOR * total
            and self.parts[-1].live + total <= self.most_entries
        ):
            merged.append(self.parts.pop())
            total += merged[-1].live
        gathered = PayloadGatherer()
        for part in merged:
            gathered.add_segment(part.find, part.payload, part.current_mask())
        gathered.add_entries(ids, payload)
        if not any(part.live for part in merged):
            self._write(ids, rows, gathered, progress)
            return
        with SpillBuffer(self._folder, self._settings.dim, self.lock) as buffer:
            for part in reversed(merged):
                for piece in part.pieces():
                    buffer.append(*piece)
            buffer.append(ids, rows)
            self._write(buffer.ids, buffer.rows, gathered, progress)

    def rewrite(self, progress: AdvanceCallback | None = None) -> None:
        """Rewrite all live entries in as few segments as possible."""
        parts, self.parts = self.parts, []
        gathered = PayloadGatherer()
        for part in parts:
            gathered.add_segment(part.find, part.payload, part.current_mask())
        with SpillBuffer(self._folder, self._settings.dim, self.lock) as buffer:
            for part in parts:
                for piece in part.pieces():
                    buffer.append(*piece)
                    self._drain(buffer, self.most_entries, gathered, progress)
            self._drain(buffer, 1, gathered, progress)

    def _drain(
        self,
        buffer: SpillBuffer,
        least: int,
        gathered: PayloadGatherer,
        progress: AdvanceCallback | None,
    ) -> None:
        while len(buffer) >= least:
            taken = min(len(buffer), self.most_entries)
            self._write(buffer.ids[:taken], buffer.rows[:taken], gathered, progress)
            buffer.drop(taken)

    def _write(
        self,
        ids: Int64Array,
        rows: Float32Array,
        gathered: PayloadGatherer,
        progress: AdvanceCallback | None,
    ) -> None:
        path = self._new_path("segment")
        record = write_segment(path, self._settings, ids, rows, progress)
        segment = Segment(self._folder, record, self.base.manifest.parameters, self._like)
        whole, file = SegmentRecord(record, len(ids), len(ids)), None
        columns = gathered.among(self.columns)
        if columns:
            payload = gathered.write(self._new_path("payload"), columns, segment.ids)
            whole = replace(whole, payload=payload)
            file = PayloadFile(map_file(self._folder, payload), len(ids))
        self.parts.append(PendingSegment(SegmentView(segment, whole, None, file)))

    def commit(self) -> State:
        """Make the changes durable and visible; returns the new state."""
        state = self._finish_files()
        state.manifest.write(self._folder)
        remove_leftovers(self._folder, state, durable=True)
        return state

    def prepare(self) -> State:
        """Make the changes durable without publishing them; returns the new state."""
        state = self._finish_files()
        state.manifest.write(self._folder, PREPARED)
        return state

    def _finish_files(self) -> State:
        self.lock.require_held()
        views = tuple(self._finish(part) for part in self.parts if part.live)
        manifest = replace(
            self.base.manifest,
            generation=self._generation,
            next_id=self.next_id,
            segments=tuple(view.record for view in views),
            columns=self.columns,
            identity=self.base.manifest.identity or new_identity(),
        )
        if self._files:  # new names must be durable before a manifest refers to them
            _files.sync_folder(self._folder)
        return State(manifest, views)

    def _finish(self, part: PendingSegment) -> SegmentView:
        if part.mask is None:
            return part.view
        path = self._new_path("live")
        record = replace(
            part.view.record, live=part.live, tombstones=write_tombstones(path, part.mask)
        )
        return SegmentView(part.view.segment, record, pack(part.mask), part.view.payload)


def remove_leftovers(folder: Path, state: State, *, durable: bool = False) -> None:
    """Remove the files of older generations and of writers that died.

    Unless the manifest of ``state`` is known to be ``durable``, it is made durable first: if a
    power failure lost it, the files of the generation before would be needed again.
    """
    if not durable and leftovers(folder, state.manifest.file_names()):
        _files.sync_folder(folder)
    remove_files_but(folder, state.manifest.file_names())


def leftovers(folder: Path, needed: set[str]) -> list[Path]:
    """The files of a database in ``folder`` that are not ``needed``."""
    return [path for path in folder.iterdir() if is_ours(path.name) and path.name not in needed]


def remove_files_but(folder: Path, needed: set[str]) -> None:
    """Remove the files of a database that are not ``needed``."""
    for path in leftovers(folder, needed):
        _files.remove_file(path)

"""Salvage: which entries of a damaged segment can be proved to be what was written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hiernorm import _core
from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.storage.block_checks import FileChecks
from hiernorm.storage.errors import DatabaseError, FormatVersionError
from hiernorm.storage.manifest import read_manifest
from hiernorm.storage.payload_gatherer import PayloadSource
from hiernorm.storage.payload_salvage import find_intact_payload
from hiernorm.storage.state import SegmentView, State, open_view

TABLE = ("sorted_ids", "sorted_positions")


@dataclass(frozen=True, eq=False)
class LostEntries:
    """Entries of a segment that could not be proved intact.

    Attributes
    ----------
    file : str
        The segment file that held them.
    count : int
        How many they are.
    ids : (n,) int64
        The ids that are still known, ascending; at most ``count``.
    """

    file: str
    count: int
    ids: Int64Array

    def __str__(self) -> str:
        known = ", ".join(str(i) for i in self.ids[:10].tolist())
        more = ", ..." if len(self.ids) > 10 else ""
        unknown = self.count - len(self.ids)
        parts = ([f"ids {known}{more}"] if len(self.ids) else []) + (
            [f"{unknown:,} of unknown id"] if unknown else []
        )
        return f"{self.file}: {self.count:,} entries lost ({'; '.join(parts)})"


@dataclass(frozen=True)
class Salvage:
    """What :meth:`hiernorm.Database.salvage` kept, and what it could not keep."""

    kept: int
    lost: tuple[LostEntries, ...]

    @property
    def lost_count(self) -> int:
        """The number of entries that are lost."""
        return sum(lost.count for lost in self.lost)


@dataclass(frozen=True, eq=False)
class IntactEntries:
    """What can be kept of a segment: which entries ``(n,)``, the ids of all, and their payload."""

    mask: BoolArray
    ids: Int64Array
    payload: PayloadSource | None

    @cached_property
    def _by_id(self) -> Int64Array:
        kept = np.flatnonzero(self.mask)
        return kept[np.argsort(self.ids[kept], kind="stable")]

    def find(self, ids: Int64Array) -> Int64Array:
        """Positions of ``ids`` ``(m,)``; -1 for those that are not kept."""
        if not len(self._by_id):
            return np.full(len(ids), -1, np.int64)
        known = self.ids[self._by_id]
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[at] == ids, self._by_id[at], -1)


def find_intact(view: SegmentView, live: BoolArray) -> tuple[IntactEntries, LostEntries]:
    """The live entries whose row, id and payload are what was written; and the others.

    Ids are there twice: where the file's own are damaged, an intact table of ids replaces them.
    """
    segment, payload = view.segment, view.payload
    checks = FileChecks(segment.file, fall_back=True)
    known, ids = checks.intact_items("ids"), segment.ids
    if not known.all() and all(checks.intact_items(name).all() for name in TABLE):
        ids = np.empty(len(segment), np.int64)
        ids[segment.sorted_positions] = segment.sorted_ids
        known = np.ones(len(segment), np.bool_)
    keep = live & known & checks.intact_items("rows")
    source: PayloadSource | None = payload
    if payload is not None:
        intact, source = find_intact_payload(payload)
        keep &= intact
    lost = live & ~keep
    found = LostEntries(
        segment.file.path.name, int(np.count_nonzero(lost)), np.sort(ids[lost & known])
    )
    return IntactEntries(keep, ids, source), found


def open_readable(
    folder: Path, like: _core.Index, previous: State | None
) -> tuple[State, list[LostEntries]]:
    """The newest generation without the segments that cannot be opened; and what these held.

    Such a segment has a file that is missing or cut, a damaged header, or damaged tombstones:
    without them nobody knows which of its entries were deleted. Its ids are not known either.

    Raises
    ------
    DatabaseError
        If the manifest is damaged, or a file is of a later version of the format.
    """
    manifest = read_manifest(folder)
    known = {} if previous is None else {view.record.data.file: view for view in previous.views}
    views, lost = [], []
    for record in manifest.segments:
        try:
            views.append(open_view(folder, record, manifest, like, known))
        except FormatVersionError:
            raise
        except (DatabaseError, FileNotFoundError):
            lost.append(LostEntries(record.data.file, record.live, np.empty(0, np.int64)))
    return State(manifest, tuple(views)), lost

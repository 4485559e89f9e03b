"""The integrity check: every digest, and every reference from one file to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hiernorm import _core
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.manifest import Manifest, read_manifest
from hiernorm.storage.payload_check import wrong_payload
from hiernorm.storage.segment import Segment, map_file
from hiernorm.storage.state import SegmentView, open_view
from hiernorm.storage.tensors import TensorFile

ROWS_AT_A_TIME = 1 << 16


def find_damage(folder: Path, like: _core.Index, manifest: Manifest | None = None) -> Iterator[str]:
    """Describe the damage of a generation on the disk, one text each.

    Reads all files of the newest generation, or of ``manifest``, and opens them again.
    """
    try:
        manifest = manifest or read_manifest(folder)
    except DatabaseError as error:
        yield str(error)
        return
    views: list[SegmentView] = []
    for record in manifest.segments:
        try:
            view = open_view(folder, record, manifest, like, {})
            files = [view.segment.file]
            view.segment.index  # noqa: B018  (as a search does)
            if record.tombstones is not None:
                files.append(map_file(folder, record.tombstones))
            if view.payload is not None:
                files.append(view.payload.file)
        except (DatabaseError, OSError) as error:
            yield str(error)
            continue
        damage = [text for file in files for text in wrong_tensors(file)]
        yield from damage
        # Damaged tables would only report the same damage again.
        if not damage:
            yield from _wrong_entries(view.segment, like)
            yield from wrong_payload(view, manifest)
            views.append(view)
    yield from _repeated_ids(views)


def wrong_tensors(file: TensorFile) -> Iterator[str]:
    """Describe the tensors of a file that do not have their digest."""
    try:
        digests = file.recorded_digests()
    except DatabaseError as error:
        yield str(error)
        return
    if set(digests) != set(file.header.tensors):
        yield f"{file.path} has tensors without a digest, or digests without a tensor"
        return
    for name in file.header.tensors:
        if file.digest_of(name) != digests[name]:
            yield f"{file.path}: {name!r} is not what was written"


def _wrong_entries(segment: Segment, like: _core.Index) -> Iterator[str]:
    path = segment.file.path
    positions = segment.sorted_positions
    if positions.max() >= len(segment) or not np.array_equal(
        segment.ids[positions], segment.sorted_ids
    ):
        yield f"{path}: the table of ids does not match the entries"
    elif (segment.sorted_ids[1:] <= segment.sorted_ids[:-1]).any():
        yield f"{path}: an id is there twice"
    for first in range(0, len(segment), ROWS_AT_A_TIME):
        rows = segment.rows[first : first + ROWS_AT_A_TIME]
        try:
            like.check(rows, np.arange(len(rows)))
        except ValueError as error:
            yield f"{path}, from position {first}: {error}"


def _repeated_ids(views: list[SegmentView]) -> Iterator[str]:
    if len(views) < 2:
        return
    ids = np.sort(np.concatenate([view.live_ids() for view in views]))
    again = ids[1:][ids[1:] == ids[:-1]]
    if len(again):
        yield f"id {again[0]} is in two segments"

"""An index in one file: a segment of a database, with the parameters of the index in its header.

The file is written whole or not at all. It is mapped when it is read: a search reads the pages that
it needs. What is checked when a file is opened: the layout, the parameters, ids and all that is
small, against their digests, and the payload. Rows and codes are checked block by block when they
are first read, or all at once on request.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm import _core, _files
from hiernorm._regular_files import read_regular
from hiernorm.array_types import AnyArray, Float32Array, Int64Array
from hiernorm.payload.columns import Column
from hiernorm.payload.memory import MemoryPayload
from hiernorm.settings import IndexSettings
from hiernorm.storage.encoding import write_segment
from hiernorm.storage.errors import DamagedError, FormatVersionError, NotADatabaseError
from hiernorm.storage.integrity import wrong_tensors
from hiernorm.storage.manifest import FileRecord, Parameters
from hiernorm.storage.payload_file import PayloadFile, column_tensors
from hiernorm.storage.segment import Segment
from hiernorm.storage.tensors import TensorFile

FORMAT = "hiernorm index"
VERSION, WITH_PAYLOAD = 1, 2
"""Files with payload or string keys are of version 2."""
LARGE = ("rows", "major_codes", "minor_codes", "cone")
"""Tensors whose names begin so are not read when a file is opened."""
PAYLOAD = ("values.", "valid.", "offsets.")
"""How the names of the tensors of payload begin: a column is checked when it is mapped."""

VECTOR_FILES = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz or zip", b"PAR1": "Parquet"}
"""How files begin that hold vectors but no index."""


@dataclass(frozen=True)
class SavedFile:
    """A mapped file, and what is compared with its checksums (``"all"``, ...)."""

    tensors: TensorFile
    checked: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.tensors.path

    def damage(self) -> list[str]:
        """Read the whole file and describe what is not as it was written."""
        return list(wrong_tensors(self.tensors))


@dataclass(frozen=True)
class SavedIndex:
    """What a file holds.

    Attributes
    ----------
    core
        The native index over the mapped file; None if the engine needs its own copy, or the
        entries are too few for codes.
    ids, rows
        ``(n,)`` and ``(n, d)``, mapped.
    payload
        The payload columns and string keys of the entries.
    """

    settings: IndexSettings
    next_id: int
    fitted_on: int
    core: _core.Index | None
    ids: Int64Array
    rows: Float32Array
    payload: MemoryPayload
    file: SavedFile


def save_index(
    path: Path,
    settings: IndexSettings,
    core: _core.Index,
    entries: tuple[Int64Array, Float32Array],
    payload: MemoryPayload,
    next_id: int,
    fitted_on: int,
) -> None:
    """Write an index that is not empty to ``path``, replacing what is there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder: make it before you save an index")
    ids, rows = entries
    encoding = core.encoding() if settings.engine == "cascade" else None
    members = {
        "format": FORMAT,
        "version": WITH_PAYLOAD if payload.columns else VERSION,
        "major": settings.major,
        "alpha": settings.alpha,
        "engine": settings.engine,
        "cells": settings.cells,
        "flat": settings.needs_fit and core.encoding() is None,
        "flat_plan": core.flat_plan,
        "next_id": next_id,
        "fitted_on": fitted_on,
    }
    more: dict[str, tuple[str, AnyArray]] = {}
    if payload.columns:
        members["string_keys"] = payload.string_keys
        members["columns"] = [asdict(column) for column in payload.columns]
        table = payload.gather(np.sort(ids))
        for column in payload.columns:
            values = table.column(column.name).combine_chunks()
            more |= column_tensors(column, values)

    def describe(segment: dict[str, Any]) -> dict[str, str]:
        members["sha256"] = _digest(members, segment)
        return {"index": json.dumps(members, sort_keys=True)}

    with _files.replacing(path) as fresh:
        write_segment(fresh, settings, ids, rows, encoding=encoding, describe=describe, more=more)


def load_index(path: Path, *, check: bool) -> SavedIndex:
    """Map a file that :func:`save_index` has written; with ``check``, read and check all of it.

    Raises
    ------
    DamagedError
        The file is not what was written, or no saved index.
    NotADatabaseError
        It is a file of vectors: ``.npy``, ``.npz`` or Parquet.
    FormatVersionError
        A newer hiernorm has written it.
    """
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder; an index is saved to one file. Database.open opens a database"
        )
    _refuse_vectors(path)
    file = TensorFile(path)
    members, description = _members(file)
    try:
        settings = IndexSettings(
            description["dim"],
            members["major"],
            members["alpha"],
            description["metric"],
            members["engine"],
            members["cells"],
            threads=None,
        )
        parameters = Parameters(settings.dim, None, None, settings.metric)
        next_id, fitted_on, flat = members["next_id"], members["fitted_on"], members["flat"]
        flat_plan = [int(least) for least in members.get("flat_plan", [])]
        columns = [Column(**column) for column in members.get("columns", [])]
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path} has parameters of no index: {error}") from None
    record = FileRecord(path.name, file.size, file.header.digest)
    segment = Segment(path.parent, record, parameters, settings.make_core())
    _check_tensors(segment.file, everything=check)
    core = _map_core(segment, settings, flat)
    if core is not None:
        core.plan_flat(flat_plan)
    else:  # whoever copies the rows reads them all
        _check_tensors(segment.file, everything=True)
    payload = MemoryPayload(bool(members.get("string_keys", False)))
    if columns:
        n, ids = len(segment), segment.sorted_ids
        table = PayloadFile(segment.file, n, columns).table(columns)
        payload = MemoryPayload(
            payload.string_keys, tuple(columns), ids, np.ones(n, np.bool_), table
        )
    mapped = SavedFile(segment.file, "all" if check else segment.checked)
    return SavedIndex(
        settings, next_id, fitted_on, core, segment.ids, segment.rows, payload, mapped
    )


def _refuse_vectors(path: Path) -> None:
    """Raise NotADatabaseError for a file of vectors, which is no damaged index."""
    begin = read_regular(path, max(map(len, VECTOR_FILES)))
    for mark, kind in VECTOR_FILES.items():
        if begin.startswith(mark):
            raise NotADatabaseError(
                f"{path} is a {kind} file, not one that Index.save wrote; Index.add reads vectors"
            )


def _digest(members: dict[str, Any], segment: dict[str, Any]) -> str:
    rest = {name: value for name, value in members.items() if name != "sha256"}
    return hashlib.sha256(json.dumps([rest, segment], sort_keys=True).encode()).hexdigest()


def _members(file: TensorFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of the index and the description of the segment, as they were written."""
    try:
        members = json.loads(file.header.metadata["index"])
        description = json.loads(file.header.metadata["hiernorm"])
        known = members["format"] == FORMAT
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known:
        raise DamagedError(f"{file.path} is no saved index: Index.save writes one")
    if members.get("version") not in (VERSION, WITH_PAYLOAD):
        raise FormatVersionError(
            f"{file.path} has index version {members.get('version')!r}, this hiernorm reads "
            f"versions {VERSION} and {WITH_PAYLOAD}"
        )
    if members.get("sha256") != _digest(members, description):
        raise DamagedError(f"{file.path} has parameters that are not those that were written")
    return members, description


def _check_tensors(file: TensorFile, *, everything: bool) -> None:
    digests = file.recorded_digests()
    for name in file.header.tensors:
        if not everything and name.startswith((*LARGE, *PAYLOAD)):
            continue
        if digests.get(name) != file.digest_of(name):
            raise DamagedError(f"{file.path}: {name!r} is not what was written; save it again")


def _map_core(segment: Segment, settings: IndexSettings, flat: bool) -> _core.Index | None:
    encoding, tensors = segment.parts()
    if settings.engine == "paper" or (settings.needs_fit and encoding is None and not flat):
        return None
    core = settings.make_core("flat" if flat else None)
    try:
        if encoding is not None:
            core.set_encoding(encoding)
        _core.attach(core, tensors, len(segment), segment.checks)
    except (ValueError, RuntimeError) as error:
        raise DamagedError(f"{segment.file.path}: {error}") from None
    return core

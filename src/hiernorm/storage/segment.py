"""One mapped segment file: checked against the manifest and its own header, ready for the core."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import (
    AnyArray,
    Float32Array,
    Int64Array,
    UInt32Array,
)
from hiernorm.storage import encoding
from hiernorm.storage.errors import DamagedError, FormatVersionError
from hiernorm.storage.manifest import FileRecord, Parameters
from hiernorm.storage.tensors import DTYPES, TensorFile


def map_file(folder: Path, record: FileRecord) -> TensorFile:
    """The file of a record, if it has the size and the header that were recorded."""
    path = folder / record.file
    size = path.stat().st_size
    if size != record.bytes:
        raise DamagedError(
            f"{path} has {size} bytes, {record.bytes} were written: restore the database from a "
            "snapshot"
        )
    return TensorFile(path, record.header_sha256)


class Segment:
    """Entries that never change: ids, rows and codes of one file.

    What is checked when it is opened takes the same time for any number of entries: the header, its
    digest, and shapes. What the core is told beside them, a few numbers per tile of entries, is
    checked when the first search asks for :attr:`index`. Whether ids, rows, codes and cones are
    those that were written is for ``Database.check``.

    Attributes
    ----------
    ids, rows
        ``(n,)`` and ``(n, d)``, mapped, in the order of the file.
    sorted_ids, sorted_positions
        ``(n,)``: the ids in ascending order, and where their entries are.
    """

    def __init__(
        self, folder: Path, record: FileRecord, parameters: Parameters, like: _core.Index
    ) -> None:
        self.file = map_file(folder, record)
        self.record = record
        self.description = self._describe(parameters)
        n, d = int(self.description["entries"]), parameters.dim
        self.rows: Float32Array = self._array("rows", np.float32, (n, d))
        self.ids: Int64Array = self._array("ids", np.int64, (n,))
        self.sorted_ids: Int64Array = self._array("sorted_ids", np.int64, (n,))
        self.sorted_positions: UInt32Array = self._array("sorted_positions", np.uint32, (n,))
        self._like = like

    @cached_property
    def index(self) -> _core.SegmentIndex:
        """What the core searches."""
        try:
            return self._attach(self._like)
        except (ValueError, RuntimeError, TypeError, KeyError) as error:
            raise DamagedError(f"{self.file.path}: {error}") from None

    def without_codes(self) -> _core.SegmentIndex:
        """What the core searches exhaustively: ids and rows, whatever the codes are."""
        tensors: dict[str, AnyArray] = {"ids": self.ids, "rows": self.rows}
        return _core.SegmentIndex(self._like, None, tensors, len(self))

    def __len__(self) -> int:
        return len(self.ids)

    def _describe(self, parameters: Parameters) -> dict[str, Any]:
        path = self.file.path
        try:
            found = json.loads(self.file.header.metadata["hiernorm"])
            known = found["format"] == encoding.FORMAT
        except (KeyError, TypeError, ValueError, RecursionError):
            known = False
        if not known:
            raise DamagedError(f"{path} is no segment of a hiernorm database")
        if found.get("version") != encoding.VERSION:
            raise FormatVersionError(
                f"{path} has segment version {found.get('version')!r}, this hiernorm reads "
                f"version {encoding.VERSION}"
            )
        entries = found.get("entries")
        if not isinstance(entries, int) or not 1 <= entries < 2**32:
            raise DamagedError(f"{path} has {entries!r} entries")
        if (found.get("dim"), found.get("metric")) != (parameters.dim, parameters.metric):
            raise DamagedError(f"{path} belongs to another database")
        return dict(found)

    def _array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> AnyArray:
        array = self.file.array(name)
        if array.dtype != dtype or array.shape != shape:
            raise DamagedError(
                f"{self.file.path}: {name!r} is {array.dtype} {array.shape}, "
                f"{np.dtype(dtype)} {shape} was expected"
            )
        if not array.flags.aligned:
            raise DamagedError(f"{self.file.path}: {name!r} is not aligned")
        return array

    def _attach(self, like: _core.Index) -> _core.SegmentIndex:
        encoding, tensors = self.parts()
        return _core.SegmentIndex(like, encoding, tensors, len(self))

    def parts(self) -> tuple[_core.Encoding | None, dict[str, AnyArray]]:
        """The encoding, if the entries have codes, and the tensors that the core searches."""
        state, d, encoding = self.description["fit"], self.rows.shape[1], None
        has = self.file.header.tensors
        if state is not None:
            rotation = self._array("rotation", np.float32, (d, d)) if "rotation" in has else None
            encoding = _core.Encoding.restore(d, state, rotation)
        cones = any(name.startswith("cone") for name in has)
        tensors: dict[str, npt.NDArray[Any]] = {"ids": self.ids, "rows": self.rows}
        for name, dtype, shape, beyond in _core.segment_tensors(d, len(self), encoding, cones):
            array = self._array(name, DTYPES[dtype], shape)
            if name not in tensors:
                tensors[name] = self.file.bytes_from(name, beyond) if beyond else array
        return encoding, tensors

    def find(self, ids: Int64Array) -> Int64Array:
        """Positions of ``ids`` ``(m,)``, dead or alive; -1 where an id is not in this segment."""
        at = np.searchsorted(self.sorted_ids, ids)
        at[at == len(self)] = 0
        found = self.sorted_ids[at] == ids
        positions = np.where(found, self.sorted_positions[at].astype(np.int64), -1)
        if positions.max(initial=-1) >= len(self) or not np.array_equal(
            self.ids[positions[found]], ids[found]
        ):
            raise DamagedError(f"{self.file.path}: the table of ids does not match the entries")
        return positions

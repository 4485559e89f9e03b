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
from hiernorm.storage.block_checks import FileChecks
from hiernorm.storage.checksums import CHECKSUMS, SETTLED, Check
from hiernorm.storage.errors import DamagedError, FormatVersionError
from hiernorm.storage.manifest import FileRecord, Parameters
from hiernorm.storage.tensors import DTYPES, PADDING, TensorFile


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
    checked when the first search asks for :attr:`index`. Ids, rows, codes and cones are checked
    block by block when they are first read, if the file has checksums and ``check`` says so.

    Attributes
    ----------
    ids, rows
        ``(n,)`` and ``(n, d)``, mapped, in the order of the file.
    sorted_ids, sorted_positions
        ``(n,)``: the ids in ascending order, and where their entries are.
    """

    def __init__(
        self,
        folder: Path,
        record: FileRecord,
        parameters: Parameters,
        like: _core.Index,
        check: Check = "touched",
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
        self._check = check
        if check == "all":
            self.file_checks.require_intact(self.entry_tensors())

    @cached_property
    def index(self) -> _core.SegmentIndex:
        """What the core searches."""
        try:
            return self._attach(self._like)
        except _core.DamagedBlockError:
            raise self.damage() from None
        except (ValueError, RuntimeError, TypeError, KeyError) as error:
            raise DamagedError(f"{self.file.path}: {error}") from None

    def without_codes(self) -> _core.SegmentIndex:
        """What the core searches exhaustively: ids and rows, whatever the codes are."""
        tensors: dict[str, AnyArray] = {"ids": self.ids, "rows": self.rows}
        return _core.SegmentIndex(self._like, None, tensors, len(self), self.checks)

    @cached_property
    def file_checks(self) -> FileChecks:
        """The checksums of the file."""
        return FileChecks(self.file)

    @property
    def checked(self) -> Check:
        """What is checked: what was asked for, if the file has checksums."""
        if self._check == "all" or self._check == "none":
            return self._check
        return self._check if self.file_checks else "none"

    @cached_property
    def checks(self) -> dict[str, _core.BlockChecks]:
        """The checks of tensors that reading passes."""
        if self._check == "none":
            return {}
        known = self.file_checks.tensors
        return {name: known[name] for name in known if self._check != "settled" or name in SETTLED}

    def entry_tensors(self) -> list[str]:
        """The tensors of the file but padding and checksums."""
        names = self.file.in_order()
        return [name for name in names if name != CHECKSUMS and not name.startswith(PADDING)]

    def require_intact(self, *names: str) -> None:
        """Read tensors whole before they are copied; DamagedError names what is wrong."""
        self.file_checks.require_intact(names)

    def damage(self) -> DamagedError:
        """The error for damage that reading has met."""
        return DamagedError("; ".join(self.file_checks.found()))

    def rows_at(self, positions: Int64Array) -> Float32Array:
        """The rows ``(m, d)`` at positions, checked."""
        if "rows" in self.checks:
            try:
                self.checks["rows"].require_items(positions, 4 * self.rows.shape[1])
            except _core.DamagedBlockError:
                raise self.damage() from None
        rows: Float32Array = self.rows[positions]
        return rows

    def checked_ids(self) -> Int64Array:
        """All ids in the order of the file, checked."""
        if "ids" in self.checks:
            try:
                self.checks["ids"].require_all()
            except _core.DamagedBlockError:
                raise self.damage() from None
        return self.ids

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
        return _core.SegmentIndex(like, encoding, tensors, len(self), self.checks)

    def parts(self) -> tuple[_core.Encoding | None, dict[str, AnyArray]]:
        """The encoding, if the entries have codes, and the tensors that the core searches."""
        state, d, encoding = self.description["fit"], self.rows.shape[1], None
        has = self.file.header.tensors
        if state is not None:
            if "rotation" in has and "rotation" in self.checks:
                self.checks["rotation"].require_all()
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
        checks = self.checks
        try:
            positions = _core.find_ids(
                self.sorted_ids,
                self.sorted_positions,
                np.ascontiguousarray(ids),
                checks.get("sorted_ids"),
                checks.get("sorted_positions"),
            )
        except _core.DamagedBlockError:
            raise self.damage() from None
        found = positions >= 0
        if positions.max(initial=-1) >= len(self) or not np.array_equal(
            self.ids[positions[found]], ids[found]
        ):
            raise DamagedError(f"{self.file.path}: the table of ids does not match the entries")
        return positions

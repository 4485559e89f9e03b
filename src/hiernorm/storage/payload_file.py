"""The payload of one segment: a safetensors file of columns, in the order of the segment.

A column has the tensor ``values.<name>`` and, if some of its values are missing, the bitmap
``valid.<name>``. Strings have their UTF-8 bytes in ``values`` and where each begins in
``offsets.<name>``. These are the buffers of an Arrow array, which maps them without a copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import AnyArray, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column
from hiernorm.storage.block_checks import RESTORE
from hiernorm.storage.errors import DamagedError, FormatVersionError
from hiernorm.storage.manifest import FileRecord
from hiernorm.storage.tensors import TensorFile, TensorWriter

FORMAT = "hiernorm payload"
VERSION = 1
DTYPES = {
    "bool": "U8",
    "string": "U8",
    "date": "I32",
    "float32": "F32",
    "float64": "F64",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}
"""The tensors that hold the values of a column; timestamps are I64."""

Tensors = dict[str, tuple[str, tuple[int, ...]]]


def write_payload(
    path: Path, columns: Sequence[Column], entries: int, read: Callable[[Column], Any]
) -> FileRecord:
    """Write the columns of a segment to a new file.

    Parameters
    ----------
    path
        Of the file, which must not exist.
    columns
        The columns, in the order of the file.
    entries
        The number of values of each.
    read
        Gives the Arrow array of a column. It is called twice, so that one column at a time is in
        memory.
    """
    layout: Tensors = {}
    for column in columns:
        for name, (dtype, values) in column_tensors(column, read(column)).items():
            layout[name] = (dtype, values.shape)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "entries": entries,
        "columns": [asdict(column) for column in columns],
    }
    metadata = {"hiernorm": json.dumps(description, sort_keys=True)}
    writer = TensorWriter(path, layout, metadata, checksums=True)
    try:
        for column in columns:
            for name, (_, values) in column_tensors(column, read(column)).items():
                writer.write(name, values)
        written = writer.finish()
    finally:
        writer.close()
    return FileRecord(path.name, written.size, written.header_digest)


_SIDE = {"valid": "U8", "offsets": "I64"}


def _dtype(column: Column) -> str:
    return DTYPES.get(column.type, "I64")


def _bits(array: Any) -> AnyArray:
    return np.packbits(array.to_numpy(zero_copy_only=False).astype(np.bool_), bitorder="little")


def column_tensors(column: Column, array: Any) -> dict[str, tuple[str, AnyArray]]:
    """Name to dtype and values of the tensors of a column."""
    return {
        name: (_dtype(column) if name.startswith("values.") else _SIDE[name.split(".")[0]], values)
        for name, values in _buffers(column, array).items()
    }


def _buffers(column: Column, array: Any) -> dict[str, AnyArray]:
    """The values of the tensors of a column; missing values are zero or empty."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    found: dict[str, AnyArray] = {}
    if array.null_count:
        found[f"valid.{column.name}"] = _bits(array.is_valid())
    if column.type == "string":
        array = array.fill_null("")
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        found[f"offsets.{column.name}"] = ends - ends[0]
        found[f"values.{column.name}"] = text[ends[0] : ends[-1]]
    elif column.type == "bool":
        found[f"values.{column.name}"] = _bits(array.fill_null(False))
    else:
        if column.type == "date":
            array = array.view(arrow.int32())
        elif column.type not in DTYPES:
            array = array.view(arrow.int64())
        found[f"values.{column.name}"] = array.fill_null(0).to_numpy(zero_copy_only=False)
    return found


class PayloadFile:
    """The mapped payload of a segment.

    A column is checked against its digests when it is first used: Arrow trusts offsets and bytes,
    and a damaged file must not crash it. ``columns`` are given if the file describes them
    elsewhere than a payload file does.
    """

    def __init__(
        self, file: TensorFile, entries: int, columns: Sequence[Column] | None = None
    ) -> None:
        self.file = file
        if columns is None:
            self.columns = self._describe(entries)
        else:
            self.columns = {column.name: column for column in columns}
        self.entries = entries
        self._arrays: dict[str, Any] = {}

    def _describe(self, entries: int) -> dict[str, Column]:
        path = self.file.path
        try:
            found = json.loads(self.file.header.metadata["hiernorm"])
            known = found["format"] == FORMAT
        except (KeyError, TypeError, ValueError, RecursionError):
            known = False
        if not known:
            raise DamagedError(f"{path} is no payload of a hiernorm database")
        if found.get("version") != VERSION:
            raise FormatVersionError(
                f"{path} has payload version {found.get('version')!r}, this hiernorm reads "
                f"version {VERSION}"
            )
        if found.get("entries") != entries:
            raise DamagedError(
                f"{path} is of {found.get('entries')!r} entries, the segment has {entries}"
            )
        try:
            columns = [Column(**column) for column in found["columns"]]
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{path}: {error}") from None
        return {column.name: column for column in columns}

    def array(self, name: str) -> Any:
        """The Arrow array of a column, not copied."""
        if name not in self._arrays:
            self._arrays[name] = self._map(self.columns[name])
        return self._arrays[name]

    def table(self, columns: Sequence[Column]) -> Any:
        """An Arrow table with these columns; null where the segment has not got one."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        return arrow.table(
            [
                self.array(column.name)
                if column.name in self.columns
                else arrow.nulls(self.entries, column.arrow_type)
                for column in columns
            ],
            names=[column.name for column in columns],
        )

    def _map(self, column: Column) -> Any:
        digests = self.file.recorded_digests()
        for name in self.tensors_of(column):
            if digests.get(name) != self.file.digest_of(name):
                raise DamagedError(f"{self.file.path}: {name!r} is not what was written: {RESTORE}")
        array = self.assemble(column)
        arrow = import_extra("pyarrow", extra=EXTRA)
        try:
            array.validate(full=True)
        except arrow.ArrowInvalid as error:
            raise DamagedError(f"{self.file.path}: column {column.name!r}: {error}") from None
        return array

    def tensors_of(self, column: Column) -> list[str]:
        """The names of the tensors of a column; DamagedError if one is missing."""
        sides = ["valid"] if f"valid.{column.name}" in self.file.header.tensors else []
        sides += ["offsets"] if column.type == "string" else []
        names = [f"{side}.{column.name}" for side in (*sides, "values")]
        for name in names:
            if name not in self.file.header.tensors:
                raise DamagedError(f"{self.file.path} has no tensor {name!r}")
        return names

    def assemble(self, column: Column, offsets: Int64Array | None = None) -> Any:
        """The Arrow array of a column, not compared with digests, with ``offsets`` if given."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        n, bits = self.entries, -(-self.entries // 8)
        valid = None
        if f"valid.{column.name}" in self.file.header.tensors:
            valid = arrow.py_buffer(self._tensor(f"valid.{column.name}", "U8", bits))
        buffers = [valid]
        count: int | None = bits if column.type == "bool" else n
        if column.type == "string":
            stored = self._tensor(f"offsets.{column.name}", "I64", n + 1)
            buffers.append(arrow.py_buffer(stored if offsets is None else offsets))
            count = None
        values = self._tensor(f"values.{column.name}", _dtype(column), count)
        buffers.append(arrow.py_buffer(values))
        return arrow.Array.from_buffers(column.arrow_type, n, buffers)

    def _tensor(self, name: str, dtype: str, count: int | None) -> AnyArray:
        """A tensor of ``count`` values."""
        values = self.file.array(name)
        tensor = self.file.header.tensors[name]
        if tensor.dtype != dtype or (count is not None and tensor.shape != (count,)):
            raise DamagedError(
                f"{self.file.path}: {name!r} is {tensor.dtype} {tensor.shape}, "
                f"{dtype} ({count},) was expected"
            )
        return values

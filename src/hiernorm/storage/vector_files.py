"""Files of vectors: ``.npy``, ``.npz``, ``.safetensors`` and ``.parquet``, read by pieces."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hiernorm._expansion import require_expansion
from hiernorm._regular_files import open_regular
from hiernorm.array_types import AnyArray
from hiernorm.extras import import_extra
from hiernorm.payload.parquet_files import mean_row_bytes, open_parquet, read_batches
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import TensorFile

PIECE_BYTES = 1 << 24
"""Bytes of vectors that are read at a time."""
SUFFIXES = (".npy", ".npz", ".safetensors", ".parquet")

Piece = tuple[AnyArray, "AnyArray | None"]
Entries = tuple[AnyArray, "AnyArray | None", Any]
"""Rows, ids and payload; the last two may be None."""
Columns = bool | Sequence[str]
"""Whether columns of a Parquet file are payload, or their names."""


def map_npy(path: Path) -> AnyArray:
    """The array of a ``.npy`` file, mapped, not read; ValueError names the file."""
    return _load(path, mmap_mode="r")


def load_npy(path: Path) -> AnyArray:
    """The array of a ``.npy`` file in memory; ValueError names the file."""
    return _load(path, mmap_mode=None)


def _load(path: Path, mmap_mode: Literal["r"] | None) -> AnyArray:
    """What NumPy reads; its errors do not name the file, and advise to unpickle it."""
    os.close(open_regular(path))
    try:
        array = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, UnicodeError, TypeError) as error:
        foreign = any(word in str(error) for word in ("pickle", "Python objects"))
        reason = "it holds Python objects, or is no .npy file" if foreign else error
        raise ValueError(f"{path} cannot be read: {reason}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} cannot be read: it is an archive, not a .npy file")
    if array.ndim == 0:
        raise ValueError(f"{path} holds a single number, not an array")
    return array


def read_file(path: Path, columns: Columns = False) -> Iterator[Entries]:
    """Rows, ids and the payload ``columns`` of a file, piece by piece."""
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path, columns)
        return
    if columns:
        raise ValueError(f"{path}: only .parquet files have columns beside the vectors")
    for rows, ids in _read_arrays(path):
        yield rows, ids, None


def _read_arrays(path: Path) -> Iterator[Piece]:
    readers = {
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".safetensors": _read_safetensors,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: vectors are read from {', '.join(SUFFIXES)}")
    return reader(path)


def count_rows(source: object) -> int | None:
    """The number of rows of a source, for progress; None if it is not known."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    if path.suffix.lower() == ".npy":
        return len(map_npy(path))
    if path.suffix.lower() == ".safetensors":
        file = open_tensors(path)
        return file.header.tensors[_matrix_name(path, _shapes(file))].shape[0]
    if path.suffix.lower() == ".parquet":
        with open_parquet(path, "parquet") as file:
            return int(file.metadata.num_rows)
    return None


def _slices(path: Path, rows: AnyArray, ids: AnyArray | None) -> Iterator[Piece]:
    if rows.ndim != 2:
        raise ValueError(
            f"{path}: vectors must have shape (n, d), got {rows.shape}; a single vector has (1, d)"
        )
    if ids is not None and len(ids) != len(rows):
        raise ValueError(f"{path}: {len(rows)} vectors need {len(rows)} ids, got {len(ids)}")
    step = max(1, PIECE_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        yield rows[part], None if ids is None else ids[part]


def _read_npy(path: Path) -> Iterator[Piece]:
    return _slices(path, map_npy(path), None)


def _read_npz(path: Path) -> Iterator[Piece]:
    """Members are read one piece after the other, whether they are compressed or not."""
    with _open_npz(path) as archive:
        layouts = {name: _npz_layout(archive, name) for name in archive.files}
        name = _matrix_name(path, {name: shape for name, (shape, _) in layouts.items()})
        read = [layouts[member] for member in {name, "ids"} & set(layouts)]
        require_expansion(path, sum(math.prod(shape) * size for shape, size in read))
        ids = archive["ids"] if "ids" in archive.files else None
        with zipfile.ZipFile(path) as packed, packed.open(f"{name}.npy") as member:
            shape, fortran, dtype = _npy_header(member)
            if fortran:
                yield from _slices(path, archive[name], ids)
                return
            first = 0
            step = max(1, PIECE_BYTES // max(1, shape[1] * dtype.itemsize))
            while first < shape[0]:
                count = min(step, shape[0] - first)
                data = member.read(count * shape[1] * dtype.itemsize)
                rows = np.frombuffer(data, dtype).reshape(count, shape[1])
                yield rows, None if ids is None else ids[first : first + count]
                first += count


@contextmanager
def _open_npz(path: Path) -> Iterator[Any]:
    """The archive; what is wrong with it raises ValueError that names the file."""
    os.close(open_regular(path))
    try:
        archive = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = "it is no .npz file" if "pickle" in str(error) else error
        raise ValueError(f"{path} cannot be read: {reason}") from None
    if not hasattr(archive, "files"):
        raise ValueError(f"{path} cannot be read: it is a single array, not a .npz file")
    with archive:
        try:
            yield archive
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        except ValueError as error:  # NumPy's about a member do not name the file
            if str(path) in str(error):
                raise
            raise ValueError(f"{path} cannot be read: {error}") from None


def _npz_layout(archive: Any, name: str) -> tuple[tuple[int, ...], int]:
    """Shape and size of an item."""
    with archive.zip.open(f"{name}.npy") as member:
        shape, _, dtype = _npy_header(member)
    return shape, dtype.itemsize


def _npy_header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(member)
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not read")
    return shape, fortran, dtype


def open_tensors(path: Path) -> TensorFile:
    """A ``.safetensors`` file of someone else: if it is damaged, no database is."""
    try:
        return TensorFile(path)
    except DamagedError as error:
        raise ValueError(str(error)) from None


def _shapes(file: TensorFile) -> dict[str, tuple[int, ...]]:
    return {name: tensor.shape for name, tensor in file.header.tensors.items()}


def _read_safetensors(path: Path) -> Iterator[Piece]:
    file = open_tensors(path)
    name = _matrix_name(path, _shapes(file))
    ids = file.array("ids") if "ids" in file.header.tensors else None
    return _slices(path, file.array(name), ids)


def _matrix_name(path: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    if len(shapes.get("vectors", ())) == 2:
        return "vectors"
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(matrices) != 1:
        raise ValueError(
            f"{path}: expected a matrix called 'vectors' or a single one, found "
            f"{', '.join(sorted(matrices)) or 'none'}"
        )
    return matrices[0]


def _read_parquet(path: Path, payload: Columns) -> Iterator[Entries]:
    """A column of lists (fixed or not) of numbers called ``vectors``, or the only one; ``ids``."""
    with open_parquet(path, "parquet") as file:
        yield from _read_batches(path, file, payload)


def _read_batches(path: Path, file: Any, payload: Columns) -> Iterator[Entries]:
    arrow = import_extra("pyarrow", extra="parquet")
    lists = [
        field.name
        for field in file.schema_arrow
        if arrow.types.is_list(field.type)
        or arrow.types.is_large_list(field.type)
        or arrow.types.is_fixed_size_list(field.type)
    ]
    name = "vectors" if "vectors" in lists else lists[0] if len(lists) == 1 else None
    if name is None:
        raise ValueError(
            f"{path}: expected a column of lists called 'vectors' or a single one, found "
            f"{', '.join(lists) or 'none'}"
        )
    there = file.schema_arrow.names
    columns = [name, "ids"] if "ids" in there else [name]
    others = [column for column in there if column not in columns]
    named = others if payload is True else list(payload or ())
    for column in named:
        if column not in others:
            found = ", ".join(others) or "none"
            raise ValueError(
                f"{path} has no payload column {column!r} beside the vectors, but {found}"
            )
    row_bytes = mean_row_bytes(file, name)
    require_expansion(path, row_bytes * file.metadata.num_rows)
    step = max(1, min(8192, PIECE_BYTES // max(1, row_bytes)))
    for batch in read_batches(path, file, step, [*columns, *named]):
        yield (
            _list_rows(path, batch.column(name)),
            batch.column("ids").to_numpy(zero_copy_only=False) if len(columns) == 2 else None,
            batch.select(named) if named else None,
        )


def _list_rows(path: Path, column: Any) -> AnyArray:
    if column.null_count:
        raise ValueError(f"{path}: a vector is missing (null)")
    values = column.flatten()
    if values.null_count or len(column) == 0 or len(values) % len(column):
        raise ValueError(f"{path}: vectors have missing values or different lengths")
    widths = {len(column[0].as_py())} if hasattr(column.type, "list_size") else _widths(column)
    if len(widths) != 1:
        raise ValueError(f"{path}: vectors have different lengths")
    rows: AnyArray = values.to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return rows


def _widths(column: Any) -> set[int]:
    return set(np.diff(np.asarray(column.offsets)).tolist())

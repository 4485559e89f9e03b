"""The exporter: entries to files that other tools read, piece by piece."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from hiernorm._files import replacing
from hiernorm.array_types import AnyArray, Float32Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import KEY
from hiernorm.payload.answers import EntryPayload
from hiernorm.progress import ProgressCallback
from hiernorm.storage.tensors import TensorWriter

Entries = Iterator[tuple[Int64Array, Float32Array]]


def export_entries(
    path: Path,
    ids: Int64Array,
    dim: int,
    entries: Entries,
    progress: ProgressCallback | None = None,
    payload: EntryPayload | None = None,
) -> list[Path]:
    """Write ``ids`` and their rows, which ``entries`` yields in the same order.

    ``.npz``, ``.safetensors`` and ``.parquet`` hold ``vectors`` and ``ids``. A ``.npy`` file holds
    the vectors, and ``<name>.ids.npy`` the ids. A file appears when it is complete. Payload and
    string keys go to ``.parquet`` only: columns of their names, and keys for ``ids``.

    Returns
    -------
    The files written.
    """
    writers = {
        ".npy": _write_npy,
        ".npz": _write_npz,
        ".safetensors": _write_safetensors,
        ".parquet": _write_parquet,
    }
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ValueError(f"{path}: vectors are written to {', '.join(writers)}")
    counted = _with_progress(entries, len(ids), progress)
    if payload is not None and writer is _write_parquet:
        return _write_parquet(path, ids, dim, counted, payload)
    if payload is not None and payload.string_keys:
        raise ValueError(f"{path}: entries with string keys are written to .parquet")
    return writer(path, ids, dim, counted)


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write a few arrays, such as the answers of a search, to one file."""
    suffix = path.suffix.lower()
    with replacing(path) as fresh:
        if suffix == ".npz":
            with fresh.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        elif suffix == ".safetensors":
            kinds = {"f": "F64", "i": "I64"}
            tensors = {name: (kinds[a.dtype.kind], a.shape) for name, a in arrays.items()}
            writer = TensorWriter(fresh, tensors, {})
            for name, array in arrays.items():
                writer.write(name, array)
            writer.finish()
        elif suffix == ".parquet":
            arrow = import_extra("pyarrow", extra="parquet")
            parquet = import_extra("pyarrow.parquet", extra="parquet")
            columns = {
                name: arrow.FixedSizeListArray.from_arrays(array.ravel(), array.shape[1])
                for name, array in arrays.items()
            }
            parquet.write_table(arrow.table(columns), fresh)
        else:
            raise ValueError(f"{path}: answers are written to .npz, .safetensors, .parquet")


def write_table(path: Path, table: Any) -> None:
    """Write an Arrow table, such as that of hits, to a Parquet file."""
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    with replacing(path) as fresh:
        parquet.write_table(table, fresh)


def _with_progress(entries: Entries, total: int, progress: ProgressCallback | None) -> Entries:
    done = 0
    for ids, rows in entries:
        yield ids, rows
        done += len(ids)
        if progress is not None:
            progress(done, total)


def _write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _write_npy(path: Path, ids: Int64Array, dim: int, entries: Entries) -> list[Path]:
    beside = path.with_name(f"{path.stem}.ids.npy")
    with replacing(beside) as fresh_ids, replacing(path) as fresh:
        with fresh_ids.open("wb") as file:
            np.save(file, ids)
        with fresh.open("wb") as file:
            _write_header(file, "<f4", (len(ids), dim))
            for _, rows in entries:
                file.write(rows.astype("<f4", copy=False).tobytes())
    return [path, beside]


def _write_npz(path: Path, ids: Int64Array, dim: int, entries: Entries) -> list[Path]:
    with replacing(path) as fresh, zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("ids.npy", "w", force_zip64=True) as member:
            _write_header(member, "<i8", ids.shape)
            member.write(ids.astype("<i8", copy=False).tobytes())
        with archive.open("vectors.npy", "w", force_zip64=True) as member:
            _write_header(member, "<f4", (len(ids), dim))
            for _, rows in entries:
                member.write(rows.astype("<f4", copy=False).tobytes())
    return [path]


def _write_safetensors(path: Path, ids: Int64Array, dim: int, entries: Entries) -> list[Path]:
    with replacing(path) as fresh:
        tensors = {"ids": ("I64", ids.shape), "vectors": ("F32", (len(ids), dim))}
        writer = TensorWriter(fresh, tensors, {})
        try:
            writer.write("ids", ids)
            for _, rows in entries:
                writer.write("vectors", rows)
            writer.finish()
        finally:
            writer.close()
    return [path]


def _write_parquet(
    path: Path,
    ids: Int64Array,
    dim: int,
    entries: Entries,
    payload: EntryPayload | None = None,
) -> list[Path]:
    arrow = import_extra("pyarrow", extra="parquet")
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    keyed = payload is not None and payload.string_keys
    columns = [] if payload is None else [c for c in payload.columns if not keyed or c.name != KEY]
    for column in columns:
        if column.name in ("ids", "vectors"):
            raise ValueError(f"{path}: payload column {column.name!r} has the name of one of ours")
    fields = [("ids", arrow.large_string() if keyed else arrow.int64())]
    fields += [("vectors", arrow.list_(arrow.float32(), dim))]
    schema = arrow.schema(fields + [(column.name, column.arrow_type) for column in columns])
    with replacing(path) as fresh, parquet.ParquetWriter(fresh, schema) as writer:
        for piece_ids, rows in entries:
            arrays = [
                arrow.array(piece_ids),
                arrow.FixedSizeListArray.from_arrays(rows.ravel(), dim),
            ]
            if payload is not None:
                table = payload.gather(piece_ids)
                arrays += [table.column(column.name) for column in columns]
                arrays[0] = table.column(KEY) if keyed else arrays[0]
            writer.write_table(arrow.table(arrays, schema=schema))
    return [path]

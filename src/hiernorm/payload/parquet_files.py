"""Parquet files of someone else: regular files only, errors that name them, and what rows take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiernorm._expansion import require_expansion
from hiernorm._regular_files import open_regular
from hiernorm.extras import import_extra


@contextmanager
def open_parquet(path: Path, extra: str) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; ValueError names the file if it is none, or damaged.

    Texts come as dictionaries: a text that is there a million times takes memory once.

    Raises OSError if it is no regular file: a FIFO would be waited for, for ever.
    """
    arrow = import_extra("pyarrow", extra=extra)
    parquet = import_extra("pyarrow.parquet", extra=extra)
    os.close(open_regular(path))
    try:
        texts = [
            field.name
            for field in parquet.read_schema(path)
            if arrow.types.is_string(field.type) or arrow.types.is_large_string(field.type)
        ]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            yield file
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    except OSError as error:  # pyarrow's, for damaged pages, have neither number nor file
        if error.errno is not None:
            raise
        raise ValueError(f"{path} is damaged: {error}") from None


def read_batches(
    path: Path, file: Any, rows: int, columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Record batches of an opened file, without dictionaries.

    Raises ValueError before the columns take more memory than such a file may: see
    :mod:`hiernorm._expansion`.
    """
    arrow = import_extra("pyarrow", extra="parquet")
    require_expansion(path, _unpacked_bytes(file, columns))
    grown = 0
    for batch in file.iter_batches(batch_size=rows, columns=columns):
        grown += sum(_bytes_decoded(column) for column in batch.columns)
        require_expansion(path, grown)
        decoded = [
            column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        yield arrow.RecordBatch.from_arrays(decoded, names=batch.schema.names)


def _unpacked_bytes(file: Any, columns: Sequence[str] | None) -> int:
    """Bytes of the pages of columns, all without, as the file says."""
    about, found = file.metadata, 0
    for group in range(about.num_row_groups):
        chunks = about.row_group(group)
        for number in range(chunks.num_columns):
            chunk = chunks.column(number)
            if columns is None or chunk.path_in_schema.split(".")[0] in columns:
                found += int(chunk.total_uncompressed_size)
    return found


def _bytes_decoded(column: Any) -> int:
    """Bytes of a column in memory, without its dictionary if it has one."""
    arrow = import_extra("pyarrow", extra="parquet")
    compute = import_extra("pyarrow.compute", extra="parquet")
    if not arrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    values = column.dictionary
    if not (arrow.types.is_string(values.type) or arrow.types.is_large_string(values.type)):
        return len(column) * max(1, int(values.nbytes) // max(1, len(values)))
    lengths = compute.binary_length(values).cast(arrow.int64()).take(column.indices)
    return 4 * len(column) + int(compute.sum(lengths).as_py() or 0)


def mean_row_bytes(file: Any, name: str) -> int:
    """Bytes of a row of the column ``name`` of lists of numbers, in memory, on average."""
    about = file.metadata
    values, rows = 0, int(about.num_rows)
    for group in range(about.num_row_groups):
        columns = about.row_group(group)
        for number in range(columns.num_columns):
            leaf = columns.column(number)
            if leaf.path_in_schema.split(".")[0] == name:
                values += int(leaf.num_values)
    size = max(1, int(file.schema_arrow.field(name).type.value_type.bit_width) // 8)
    return -(-values * size // max(1, rows))

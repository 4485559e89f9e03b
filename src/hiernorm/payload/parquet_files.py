"""Parquet files of someone else: regular files only, errors that name them, and what rows take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiernorm._regular_files import open_regular
from hiernorm.extras import import_extra


@contextmanager
def open_parquet(path: Path, extra: str) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; ValueError names the file if it is none, or damaged.

    Raises OSError if it is no regular file: a FIFO would be waited for, for ever.
    """
    arrow = import_extra("pyarrow", extra=extra)
    parquet = import_extra("pyarrow.parquet", extra=extra)
    os.close(open_regular(path))
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    except OSError as error:  # pyarrow's, for damaged pages, have neither number nor file
        if error.errno is not None:
            raise
        raise ValueError(f"{path} is damaged: {error}") from None


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

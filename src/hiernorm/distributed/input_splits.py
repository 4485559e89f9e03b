"""Input splits: ranges of rows of the source files, each the work of one task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.storage.sources import read_pieces
from hiernorm.storage.vector_files import count_rows, map_npy

SPLIT_BYTES = 1 << 28
"""Bytes of a ``.npy`` file that one task reads; any other file is one split."""


@dataclass(frozen=True)
class InputSplit:
    """Rows ``first`` to ``last`` of a file (None: to its end), the work of one task.

    ``first_id`` is the id of its first row if the file has no ids.
    """

    number: int
    file: str
    first: int
    last: int | None
    first_id: int | None
    entries: int | None


def list_splits(files: list[Path]) -> list[InputSplit]:
    """The input splits of files, numbered in the order of their rows."""
    splits: list[InputSplit] = []
    next_id: int | None = 0
    for file in files:
        rows = count_rows(file)
        for first, last in _ranges(file, rows):
            entries = rows if last is None else last - first
            first_id = None if next_id is None else next_id + first
            splits.append(InputSplit(len(splits), str(file), first, last, first_id, entries))
        next_id = None if next_id is None or rows is None else next_id + rows
    return splits


def _ranges(file: Path, rows: int | None) -> Iterator[tuple[int, int | None]]:
    if file.suffix.lower() != ".npy" or not rows:
        yield 0, None
        return
    mapped = map_npy(file)
    step = max(1, SPLIT_BYTES // max(1, mapped[:1].nbytes))
    for first in range(0, rows, step):
        yield first, min(first + step, rows)


def read_split(split: InputSplit) -> Iterator[tuple[Any, Any]]:
    """Rows and ids of an input split, piece by piece."""
    file = Path(split.file)
    if split.last is not None:
        mapped = map_npy(file)
        pieces: Iterator[tuple[Any, Any]] = read_pieces(iter([mapped[split.first : split.last]]))
    else:
        pieces = read_pieces(file)
    taken = 0
    for rows, ids in pieces:
        if ids is None:
            if split.first_id is None:
                raise ValueError(
                    f"{file} has no ids, and how many rows the files before it have is not known: "
                    "give ids, or .npy, .safetensors or .parquet files"
                )
            ids = np.arange(split.first_id + taken, split.first_id + taken + len(rows))
        taken += len(rows)
        yield rows, ids


def first_dim(files: list[Path]) -> int:
    """The number of dimensions of the first rows in the files."""
    for file in files:
        for rows, _ in read_pieces(file):
            if rows.ndim != 2:
                raise ValueError(f"{file}: vectors must have shape (n, d), got {rows.shape}")
            return int(rows.shape[1])
    raise ValueError(f"{', '.join(map(str, files))}: there are no vectors")


def describe_sources(files: list[Path]) -> list[list[Any]]:
    """Name, size and time of each file: how an interrupted build recognises its sources."""
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]

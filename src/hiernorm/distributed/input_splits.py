"""Files of vectors, cut into units that tasks read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.storage.sources import count_rows, read_pieces

UNIT_BYTES = 1 << 28
"""Of a ``.npy`` file that one task reads; other files are one unit each."""


@dataclass(frozen=True)
class Unit:
    """Rows ``first`` to ``last`` of a file (None: to its end), one task's work.

    ``first_id`` is the id of its first row, should the file have no ids.
    """

    number: int
    file: str
    first: int
    last: int | None
    first_id: int | None
    entries: int | None


def list_units(files: list[Path]) -> list[Unit]:
    """The units of files, numbered in the order of their rows."""
    units: list[Unit] = []
    next_id: int | None = 0
    for file in files:
        rows = count_rows(file)
        for first, last in _cuts(file, rows):
            entries = rows if last is None else last - first
            first_id = None if next_id is None else next_id + first
            units.append(Unit(len(units), str(file), first, last, first_id, entries))
        next_id = None if next_id is None or rows is None else next_id + rows
    return units


def _cuts(file: Path, rows: int | None) -> Iterator[tuple[int, int | None]]:
    if file.suffix.lower() != ".npy" or not rows:
        yield 0, None
        return
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    step = max(1, UNIT_BYTES // max(1, mapped[:1].nbytes))
    for first in range(0, rows, step):
        yield first, min(first + step, rows)


def read_unit(unit: Unit) -> Iterator[tuple[Any, Any]]:
    """Rows and ids of a unit, piece by piece."""
    file = Path(unit.file)
    if unit.last is not None:
        mapped = np.load(file, mmap_mode="r", allow_pickle=False)
        pieces: Iterator[tuple[Any, Any]] = read_pieces(iter([mapped[unit.first : unit.last]]))
    else:
        pieces = read_pieces(file)
    taken = 0
    for rows, ids in pieces:
        if ids is None:
            if unit.first_id is None:
                raise ValueError(
                    f"{file} has no ids, and how many rows the files before it have is not known: "
                    "give ids, or .npy, .safetensors or .parquet files"
                )
            ids = np.arange(unit.first_id + taken, unit.first_id + taken + len(rows))
        taken += len(rows)
        yield rows, ids


def first_dim(files: list[Path]) -> int:
    """The dimensions of the first rows there are."""
    for file in files:
        for rows, _ in read_pieces(file):
            if rows.ndim != 2:
                raise ValueError(f"{file}: vectors must have shape (n, d), got {rows.shape}")
            return int(rows.shape[1])
    raise ValueError(f"{', '.join(map(str, files))}: there are no vectors")


def describe_sources(files: list[Path]) -> list[list[Any]]:
    """What tells whether files are those of a build that was interrupted."""
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]

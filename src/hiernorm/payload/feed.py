"""The rows of a payload, piece by piece beside the vectors they belong to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column, agree, complete
from hiernorm.payload.parquet_files import open_parquet, read_batches
from hiernorm.payload.tables import as_table, check_rows

BATCH = 8192
"""Rows of a Parquet file that are read at a time."""


class PayloadFeed:
    """Hands out a payload from front to back; a Parquet file is read as far as it is needed.

    Parameters
    ----------
    payload
        As for :func:`hiernorm.payload.tables.as_table`, or the name of a Parquet file.
    """

    def __init__(self, payload: Any) -> None:
        self._arrow = import_extra("pyarrow", extra=EXTRA)
        self._given = 0
        if isinstance(payload, (str, os.PathLike)):
            self._pieces = _read_parquet(Path(payload))
            self._left: list[Any] = []
        else:
            self._pieces = iter(())
            self._left = [as_table(payload)]

    def take(self, count: int) -> Any:
        """The next ``count`` rows; fewer if there are no more."""
        taken, missing = [], count
        while missing:
            if not self._left:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._left.append(piece)
            piece = self._left.pop()
            if len(piece) > missing:
                self._left.append(piece.slice(missing))
                piece = piece.slice(0, missing)
            taken.append(piece)
            missing -= len(piece)
        self._given += count - missing
        return self._arrow.concat_tables(taken) if taken else self._arrow.table({})

    def finish(self, count: int) -> None:
        """Raise ValueError unless ``count`` rows were there and all were taken."""
        total = self._given + sum(len(piece) for piece in (*self._left, *self._pieces))
        if total != count:
            raise ValueError(f"{count} vectors need {count} rows of payload, got {total}")


def read_table(payload: Any, count: int) -> Any:
    """All of a payload of ``count`` vectors as one Arrow table."""
    feed = PayloadFeed(payload)
    table = feed.take(count)
    feed.finish(count)
    return table


def join_tables(pieces: Sequence[tuple[int, Any]]) -> Any:
    """One Arrow table of pieces, each a number of rows and a payload; null where that is None."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    columns: tuple[Column, ...] = ()
    tables = []
    for count, payload in pieces:
        if payload is not None:
            table = as_table(payload)
            check_rows(table, count)
            columns, table = agree(columns, table)
            tables.append((count, table))
        else:
            tables.append((count, None))
    return arrow.concat_tables([complete(columns, table, count) for count, table in tables])


def _read_parquet(path: Path) -> Iterator[Any]:
    arrow = import_extra("pyarrow", extra=EXTRA)
    if not path.exists():
        raise FileNotFoundError(f"payload {path} does not exist")
    if path.suffix.lower() != ".parquet":
        raise ValueError(f"payload {path}: a file of columns is .parquet")
    with open_parquet(path, EXTRA) as file:
        for batch in read_batches(path, file, BATCH):
            yield as_table(arrow.Table.from_batches([batch]))

"""Sources of vectors: arrays, iterators and files, read piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import AnyArray, Float32Array
from hiernorm.arrays import as_rows
from hiernorm.inputs import is_array, to_numpy
from hiernorm.payload.feed import join_tables, read_table
from hiernorm.storage.vector_files import Columns, Entries, Piece, map_npy, read_file


def is_source(x: object) -> bool:
    """Whether ``x`` is a file or an iterator of pieces, not an array."""
    if isinstance(x, (str, Path)):
        return True
    if is_array(x) or isinstance(x, (list, tuple, bytes, dict, set, frozenset)):
        return False
    return isinstance(x, Iterable)


def is_columns(payload: Any) -> bool:
    """Whether ``payload`` is about columns of the source: True, or a list of names."""
    if isinstance(payload, (list, tuple)):
        return bool(payload) and all(isinstance(name, str) for name in payload)
    return payload is True


def refuse_columns(columns: Columns) -> None:
    """Raise ValueError if columns of a file are asked for: the vectors are an array."""
    if columns:
        raise ValueError("payload names columns of a Parquet file, the vectors are an array")


def as_array(x: Any) -> Any:
    """``x``, or the mapped array if it is a ``.npy`` file of contiguous float32 rows."""
    if isinstance(x, (str, Path)) and Path(x).suffix.lower() == ".npy":
        mapped = map_npy(Path(x))
        if mapped.dtype == np.float32 and mapped.ndim == 2 and mapped.flags.c_contiguous:
            return mapped
    return x


def read_pieces(source: str | Path | Iterable[Any]) -> Iterator[Piece]:
    """Rows and, if the source has them, ids, piece by piece.

    An iterator yields arrays ``(n, d)``, or pairs of ids and rows. In files, vectors and ids are
    found by name: ``vectors`` (or the only matrix there is) and ``ids``.
    """
    for rows, ids, _ in read_entries(source):
        yield rows, ids


def read_entries(source: str | Path | Iterable[Any], columns: Columns = False) -> Iterator[Entries]:
    """The same with payload: the third of a tuple, or ``columns`` of a Parquet file."""
    if not isinstance(source, (str, Path)):
        for item in source:
            if isinstance(item, tuple):
                ids, rows, *payload = item
                yield (
                    to_numpy("vectors", rows),
                    None if ids is None else np.asarray(ids),
                    payload[0] if payload else None,
                )
            else:
                yield to_numpy("vectors", item), None, None
        return
    yield from read_file(Path(source), columns)


def read_vectors(x: Any, dim: int, payload: Any) -> tuple[Float32Array, AnyArray | None, Any]:
    """All vectors in memory with the ids and the payload of their source, None without.

    ``x`` and ``payload`` are as for ``Database.add``.
    """
    x, named = as_array(x), is_columns(payload)
    if not is_source(x):
        refuse_columns(named)
        rows = as_rows("vectors", x, dim)
        return rows, None, None if payload is None else read_table(payload, len(rows))
    pieces = list(read_entries(x, payload if named else False))
    parts = [as_rows("vectors", piece, dim) for piece, _, _ in pieces]
    whole = np.concatenate([np.empty((0, dim), np.float32), *parts])
    given = [ids for _, ids, _ in pieces if ids is not None]
    if given and len(given) < len(pieces):
        raise ValueError("some vectors of the source come with ids, and others without")
    tables = [(len(part), own) for part, (_, _, own) in zip(parts, pieces, strict=True)]
    own = any(table is not None for _, table in tables)
    if own and payload is not None and not named:
        raise ValueError("payload is given twice: with the vectors, and as payload=")
    table = None
    if own:
        table = join_tables(tables)
    elif payload is not None and not named:
        table = read_table(payload, len(whole))
    return whole, np.concatenate(given) if given else None, table

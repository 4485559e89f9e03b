"""The importer: vectors from any source are checked, gathered into segments and inserted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_ids, as_new_ids, as_rows, following_ids, next_id_after
from hiernorm.payload.keys import as_keys, as_new_keys, ids_of_keys, refuse_equal_ids
from hiernorm.progress import ProgressCallback
from hiernorm.storage.key_collisions import keys_of_pieces, refuse_collisions
from hiernorm.storage.payload_queue import PayloadQueue
from hiernorm.storage.sources import (
    as_array,
    is_columns,
    is_source,
    read_entries,
    refuse_columns,
)
from hiernorm.storage.spill_buffer import SpillBuffer
from hiernorm.storage.transaction import Transaction
from hiernorm.storage.vector_files import Columns, count_rows


class Importer:
    """Inserts the vectors of a source into a transaction.

    Parameters
    ----------
    transaction
        The transaction that takes them.
    like
        An empty index of the database's settings, which checks the vectors.
    replace
        Whether existing ids are replaced; else they are an error.
    payload
        The payload of all vectors, or which columns of their Parquet file are payload.
    """

    def __init__(
        self,
        transaction: Transaction,
        like: _core.Index,
        dim: int,
        replace: bool,
        payload: Any = None,
    ) -> None:
        own = is_columns(payload)
        self._columns: Columns = payload if own else False
        self._queue = PayloadQueue(transaction.columns, None if own else payload)
        self._string_keys = transaction.base.manifest.parameters.string_keys
        self._transaction = transaction
        self._like = like
        self._dim = dim
        self._replace = replace
        self._first_new = len(transaction.parts)
        self._count = 0

    def run(
        self,
        x: Any,
        ids: npt.ArrayLike | None,
        buffer: SpillBuffer,
        progress: ProgressCallback | None,
    ) -> int:
        """Insert all vectors; returns how many."""
        x = as_array(x)
        if is_source(x):
            self._run_pieces(x, None if ids is None else self._listed(ids), buffer, progress)
            self._queue.finish(self._count)
            return self._count
        refuse_columns(self._columns)
        rows, checked_ids, keys = self._checked(x, ids)
        self._queue.append(len(rows), None, keys)
        self._queue.finish(len(rows))
        step = self._transaction.most_entries
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            self._admit(checked_ids[part], None if keys is None else keys[part])
            self._insert(checked_ids[part], rows[part])
            if progress is not None:
                progress(self._count, len(rows))
        return self._count

    def _run_pieces(
        self,
        source: Any,
        given: Int64Array | list[str] | None,
        buffer: SpillBuffer,
        progress: ProgressCallback | None,
    ) -> None:
        """Buffer pieces until they fill a segment."""
        most = self._transaction.most_entries
        total = count_rows(source)
        for x, piece_ids, payload in read_entries(source, self._columns):
            ids_of_piece: Any = piece_ids
            if given is not None:
                ids_of_piece = given[self._count : self._count + len(x)]
            rows, ids, keys = self._checked(x, ids_of_piece)
            self._queue.append(len(rows), payload, keys)
            self._admit(ids, keys)
            buffer.append(ids, rows)
            while len(buffer) >= most:
                self._insert(buffer.ids[:most], buffer.rows[:most])
                buffer.drop(most)
            if progress is not None:
                progress(self._count, total)
        if given is not None and len(given) != self._count:
            raise ValueError(f"{self._count} vectors need {self._count} ids, got {len(given)}")
        if len(buffer):
            self._insert(buffer.ids, buffer.rows)

    def _checked(
        self, x: npt.ArrayLike, ids: npt.ArrayLike | None
    ) -> tuple[Float32Array, Int64Array, list[str] | None]:
        """Rows, ids and, in a database with string keys, keys."""
        rows = as_rows("vectors", x, self._dim)
        keys = None
        if self._string_keys:
            keys = as_new_keys(ids, len(rows), "database")
            checked = ids_of_keys(keys)
        elif ids is None:
            checked = following_ids(self._transaction.next_id, len(rows))
        else:
            checked = as_new_ids(ids, len(rows))
        try:
            self._like.check(rows, np.arange(len(rows)))
        except ValueError as error:
            if self._count == 0:
                raise
            raise ValueError(f"{error} (counted from vector {self._count} on)") from None
        return rows, checked, keys

    def _listed(self, ids: Any) -> Int64Array | list[str]:
        return as_keys(ids) if self._string_keys else as_ids(ids)

    def _admit(self, ids: Int64Array, keys: list[str] | None) -> None:
        """Refuse ids that exist or come twice; when replacing, delete the existing ones."""
        if len(ids) == 0:
            return
        transaction = self._transaction
        if keys is not None:
            refuse_collisions(transaction.parts, ids, keys)
        if self._replace:
            new = transaction.parts[self._first_new :]
            _refuse(ids, _any_of(part.holds(ids) for part in new), "is given twice", keys)
            transaction.remove(ids)
        else:
            what = "is in the database already: upsert replaces it"
            _refuse(ids, transaction.find(ids), what, keys)
        transaction.next_id = next_id_after(transaction.next_id, ids)
        self._count += len(ids)

    def _insert(self, ids: Int64Array, rows: Float32Array) -> None:
        payload = self._queue.take(len(ids))
        self._transaction.columns = self._queue.columns
        keys = keys_of_pieces(payload) if self._string_keys else None
        order = np.argsort(ids, kind="stable")
        again = np.zeros(len(ids), np.bool_)
        again[order[1:]] = ids[order[1:]] == ids[order[:-1]]
        if keys is not None:
            refuse_equal_ids(ids, keys)
        _refuse(ids, again, "is given twice", keys)
        # The same id may be in an earlier segment of this import.
        new = self._transaction.parts[self._first_new :]
        _refuse(ids, _any_of(part.holds(ids) for part in new), "is given twice", keys)
        self._transaction.insert(ids, rows, payload)


def _any_of(masks: Any) -> BoolArray | None:
    found = None
    for mask in masks:
        found = mask if found is None else found | mask
    return found


def _refuse(ids: Int64Array, bad: BoolArray | None, what: str, keys: Sequence[str] | None) -> None:
    if bad is not None and bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"id {ids[at]} {what}" if keys is None else f"key {keys[at]!r} {what}")

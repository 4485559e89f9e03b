"""The importer: vectors from any source are checked, gathered into segments and inserted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_ids, as_new_ids, as_rows, following_ids, next_id_after
from hiernorm.progress import ProgressCallback
from hiernorm.storage.sources import as_array, count_rows, is_source, read_pieces
from hiernorm.storage.spill_buffer import SpillBuffer
from hiernorm.storage.transaction import Transaction


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
    """

    def __init__(
        self, transaction: Transaction, like: _core.Index, dim: int, replace: bool
    ) -> None:
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
            self._run_pieces(x, None if ids is None else as_ids(ids), buffer, progress)
            return self._count
        rows, checked_ids = self._checked(x, ids)
        step = self._transaction.most_entries
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            self._admit(checked_ids[part])
            self._insert(checked_ids[part], rows[part])
            if progress is not None:
                progress(self._count, len(rows))
        return self._count

    def _run_pieces(
        self,
        source: Any,
        given: Int64Array | None,
        buffer: SpillBuffer,
        progress: ProgressCallback | None,
    ) -> None:
        """Buffer pieces until they fill a segment."""
        most = self._transaction.most_entries
        total = count_rows(source)
        for x, piece_ids in read_pieces(source):
            if given is not None:
                piece_ids = given[self._count : self._count + len(x)]
            rows, ids = self._checked(x, piece_ids)
            self._admit(ids)
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
    ) -> tuple[Float32Array, Int64Array]:
        rows = as_rows("vectors", x, self._dim)
        if ids is None:
            checked = following_ids(self._transaction.next_id, len(rows))
        else:
            checked = as_new_ids(ids, len(rows))
        try:
            self._like.check(rows, np.arange(len(rows)))
        except ValueError as error:
            if self._count == 0:
                raise
            raise ValueError(f"{error} (counted from vector {self._count} on)") from None
        return rows, checked

    def _admit(self, ids: Int64Array) -> None:
        """Refuse ids that exist or come twice; when replacing, delete the existing ones."""
        if len(ids) == 0:
            return
        transaction = self._transaction
        if self._replace:
            new = transaction.parts[self._first_new :]
            _refuse(ids, _any_of(part.holds(ids) for part in new), "is given twice")
            transaction.remove(ids)
        else:
            what = "is in the database already: upsert replaces it"
            _refuse(ids, transaction.find(ids), what)
        transaction.next_id = next_id_after(transaction.next_id, ids)
        self._count += len(ids)

    def _insert(self, ids: Int64Array, rows: Float32Array) -> None:
        in_order = np.sort(ids)
        again = in_order[1:] == in_order[:-1]
        _refuse(in_order[1:], again, "is given twice")
        # The same id may be in an earlier segment of this import.
        new = self._transaction.parts[self._first_new :]
        _refuse(ids, _any_of(part.holds(ids) for part in new), "is given twice")
        self._transaction.insert(ids, rows)


def _any_of(masks: Any) -> BoolArray | None:
    found = None
    for mask in masks:
        found = mask if found is None else found | mask
    return found


def _refuse(ids: Int64Array, bad: BoolArray | None, what: str) -> None:
    if bad is not None and bad.any():
        raise ValueError(f"id {ids[int(np.argmax(bad))]} {what}")

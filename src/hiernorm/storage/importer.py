"""Adding and replacing entries: checked piece by piece, gathered into segments, all or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_ids, as_rows
from hiernorm.progress import ProgressCallback
from hiernorm.storage.sources import as_array, count_rows, is_source, read_pieces
from hiernorm.storage.spill_buffer import SpillBuffer
from hiernorm.storage.transaction import Transaction

MOST_ID = int(np.iinfo(np.int64).max)


class Importer:
    """Brings vectors of any source into a transaction.

    Parameters
    ----------
    transaction
        That takes them.
    like
        An empty index of the database's settings, which checks the vectors.
    replace
        Whether ids that are there already are replaced; else they are an error.
    """

    def __init__(
        self, transaction: Transaction, like: _core.Index, dim: int, replace: bool
    ) -> None:
        self._transaction = transaction
        self._like = like
        self._dim = dim
        self._replace = replace
        self._first_new = len(transaction.parts)
        self._taken = 0

    def run(
        self, x: Any, ids: npt.ArrayLike | None, spool: SpillBuffer, report: ProgressCallback | None
    ) -> int:
        """Take in all vectors; how many there were."""
        x = as_array(x)
        if is_source(x):
            self._run_pieces(x, None if ids is None else as_ids(ids), spool, report)
            return self._taken
        rows, checked_ids = self._checked(x, ids)
        step = self._transaction.most_entries
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            self._admit(checked_ids[part])
            self._insert(checked_ids[part], rows[part])
            if report is not None:
                report(self._taken, len(rows))
        return self._taken

    def _run_pieces(
        self,
        source: Any,
        given: Int64Array | None,
        spool: SpillBuffer,
        report: ProgressCallback | None,
    ) -> None:
        """Gather pieces until they are enough for a segment."""
        most = self._transaction.most_entries
        total = count_rows(source)
        for x, piece_ids in read_pieces(source):
            if given is not None:
                piece_ids = given[self._taken : self._taken + len(x)]
            rows, ids = self._checked(x, piece_ids)
            self._admit(ids)
            spool.append(ids, rows)
            while len(spool) >= most:
                self._insert(spool.ids[:most], spool.rows[:most])
                spool.drop(most)
            if report is not None:
                report(self._taken, total)
        if given is not None and len(given) != self._taken:
            raise ValueError(f"{self._taken} vectors need {self._taken} ids, got {len(given)}")
        if len(spool):
            self._insert(spool.ids, spool.rows)

    def _checked(
        self, x: npt.ArrayLike, ids: npt.ArrayLike | None
    ) -> tuple[Float32Array, Int64Array]:
        rows = as_rows("vectors", x, self._dim)
        if ids is None:
            first = self._transaction.next_id
            if first + len(rows) > MOST_ID:
                raise ValueError("the ids that follow the largest do not fit int64: give ids")
            checked = np.arange(first, first + len(rows), dtype=np.int64)
        else:
            checked = as_ids(ids, len(rows))
        try:
            self._like.check(rows, np.arange(len(rows)))
        except ValueError as error:
            if self._taken == 0:
                raise
            raise ValueError(f"{error} (counted from vector {self._taken} on)") from None
        return rows, checked

    def _admit(self, ids: Int64Array) -> None:
        """Refuse ids that must not come, or make room for them."""
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
        transaction.next_id = max(transaction.next_id, min(int(ids.max()) + 1, MOST_ID))
        self._taken += len(ids)

    def _insert(self, ids: Int64Array, rows: Float32Array) -> None:
        in_order = np.sort(ids)
        again = in_order[1:] == in_order[:-1]
        _refuse(in_order[1:], again, "is given twice")
        # An id of an earlier segment of this very insertion, come again while it was in the spool.
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

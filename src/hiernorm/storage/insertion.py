"""Adding and replacing entries: checked piece by piece, gathered into segments, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.arrays import as_ids, as_rows
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.storage.sources import count_rows, is_source, read_pieces
from hiernorm.storage.spool import Spool
from hiernorm.storage.transaction import Transaction

MOST_ID = int(np.iinfo(np.int64).max)

Report = Callable[[int, "int | None"], None]
"""Called with the entries taken in so far, and how many there will be if that is known."""


class Insertion:
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

    def run(self, x: Any, ids: npt.ArrayLike | None, spool: Spool, report: Report | None) -> int:
        """Take in all vectors; how many there were."""
        if is_source(x):
            total = count_rows(x)
            given = None if ids is None else as_ids(ids)
            for rows, piece_ids in read_pieces(x):
                if given is not None:
                    piece_ids = given[self._taken : self._taken + len(rows)]
                self._take(spool, *self._checked(rows, piece_ids), report, total)
            if given is not None and len(given) != self._taken:
                raise ValueError(f"{self._taken} vectors need {self._taken} ids, got {len(given)}")
        else:
            rows, checked_ids = self._checked(x, ids)
            step = self._transaction.most_entries
            for first in range(0, len(rows), step):
                part = slice(first, first + step)
                self._take(spool, rows[part], checked_ids[part], report, len(rows))
        if len(spool):
            self._insert(spool.ids, spool.rows)
        return self._taken

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

    def _take(
        self,
        spool: Spool,
        rows: Float32Array,
        ids: Int64Array,
        report: Report | None,
        total: int | None,
    ) -> None:
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
        spool.append(ids, rows)
        self._taken += len(ids)
        while len(spool) >= transaction.most_entries:
            part = slice(0, transaction.most_entries)
            self._insert(spool.ids[part], spool.rows[part])
            spool.drop(transaction.most_entries)
        if report is not None:
            report(self._taken, total)

    def _insert(self, ids: Int64Array, rows: Float32Array) -> None:
        in_order = np.sort(ids)
        again = np.flatnonzero(np.diff(in_order) == 0)
        if len(again):
            raise ValueError(f"id {in_order[again[0]]} is given twice")
        # An id of an earlier segment of this very insertion, come again while it was in the spool.
        new = self._transaction.parts[self._first_new :]
        _refuse(ids, _any_of(part.holds(ids) for part in new), "is given twice")
        self._transaction.insert(ids, rows)


def _any_of(masks: Any) -> npt.NDArray[np.bool_] | None:
    found = None
    for mask in masks:
        found = mask if found is None else found | mask
    return found


def _refuse(ids: Int64Array, bad: npt.NDArray[np.bool_] | None, what: str) -> None:
    if bad is not None and bad.any():
        raise ValueError(f"id {ids[int(np.argmax(bad))]} {what}")

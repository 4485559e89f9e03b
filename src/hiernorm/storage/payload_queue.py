"""The payload of entries on their way into a transaction: checked, and kept until it is due."""

from __future__ import annotations

from typing import Any

from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import Column, agree, complete
from hiernorm.payload.feed import PayloadFeed
from hiernorm.payload.tables import add_keys, as_table, check_rows
from hiernorm.storage.payload_gatherer import PayloadPiece


class PayloadQueue:
    """Takes payload beside vectors and gives it when their segment is written.

    Parameters
    ----------
    columns
        Which the payload must agree with; new columns are added to them.
    payload
        The payload of all vectors, or None if they have none or it comes with them.
    """

    def __init__(self, columns: tuple[Column, ...], payload: Any) -> None:
        self.columns = columns
        self._feed = None if payload is None else PayloadFeed(payload)
        self._pieces: list[PayloadPiece] = []

    def append(self, count: int, payload: Any, keys: list[str] | None) -> None:
        """Append what belongs to the next ``count`` vectors: their own ``payload``, and keys."""
        table = None if payload is None else as_table(payload)
        if self._feed is not None:
            if table is not None:
                raise ValueError("payload is given twice: with the vectors, and as payload=")
            table = self._feed.take(count)
        if table is not None:
            check_rows(table, count)
        if keys is not None:
            table = add_keys(table, keys)
        if table is not None:
            self.columns, table = agree(self.columns, table)
        self._pieces.append((count, table))

    def take(self, count: int) -> list[PayloadPiece]:
        """The payload of the first ``count`` vectors, which leave the queue."""
        taken = []
        while count:
            length, table = self._pieces.pop(0)
            if length > count:
                rest = None if table is None else table.slice(count)
                self._pieces.insert(0, (length - count, rest))
                length, table = count, None if table is None else table.slice(0, count)
            taken.append((length, table))
            count -= length
        return taken

    def take_table(self, count: int) -> Any:
        """The same as one Arrow table with all columns; None if there is no payload."""
        pieces = self.take(count)
        if all(table is None for _, table in pieces):
            return None
        arrow = import_extra("pyarrow", extra=EXTRA)
        return arrow.concat_tables([complete(self.columns, t, length) for length, t in pieces])

    def finish(self, count: int) -> None:
        """Raise ValueError if there is payload for more than ``count`` vectors."""
        if self._feed is not None:
            self._feed.finish(count)

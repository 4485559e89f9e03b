"""Salvage of payload: which entries of a damaged payload file can be proved, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.payload.columns import Column
from hiernorm.storage.block_checks import FileChecks
from hiernorm.storage.payload_file import PayloadFile
from hiernorm.storage.payload_gatherer import PayloadSource


def find_intact_payload(payload: PayloadFile) -> tuple[BoolArray, PayloadSource]:
    """The entries ``(n,)`` all of whose values are what was written, and where to read those.

    The source is the file itself if all of it is intact.
    """
    found = _IntactValues(payload)
    intact = np.ones(payload.entries, np.bool_)
    for column in payload.columns.values():
        intact &= found.entries(column)
    if found.all:
        return intact, payload
    return intact, _IntactPayload(payload.columns, payload, found)


@dataclass(frozen=True, eq=False)
class _IntactPayload:
    """Payload whose values are right for the intact entries only."""

    columns: dict[str, Column]
    payload: PayloadFile
    found: _IntactValues

    def array(self, name: str) -> Any:
        """The Arrow array of a column."""
        column = self.columns[name]
        offsets = self.found.offsets(column) if column.type == "string" else None
        return self.payload.assemble(column, offsets)


class _IntactValues:
    """Which values of the tensors of a payload file are what was written."""

    def __init__(self, payload: PayloadFile) -> None:
        self._payload = payload
        checks = FileChecks(payload.file, fall_back=True)
        self._intact = {
            name: checks.intact_items(name)
            for column in payload.columns.values()
            for name in payload.tensors_of(column)
        }

    @property
    def all(self) -> bool:
        return all(intact.all() for intact in self._intact.values())

    def entries(self, column: Column) -> BoolArray:
        """The entries ``(n,)`` whose value of a column is intact."""
        n, intact = self._payload.entries, self._intact[f"values.{column.name}"]
        found: BoolArray
        if column.type == "string":
            known = self._intact[f"offsets.{column.name}"]
            damaged = np.concatenate([[0], np.cumsum(~intact)])[self.offsets(column)]
            found = known[:-1] & known[1:] & (damaged[:-1] == damaged[1:])
        else:
            found = _of_bits(intact, n) if column.type == "bool" else intact
        valid = self._intact.get(f"valid.{column.name}")
        return found if valid is None else found & _of_bits(valid, n)

    def offsets(self, column: Column) -> Int64Array:
        """Where strings begin ``(n + 1,)``; an offset that is damaged is that of the one before."""
        name = f"offsets.{column.name}"
        stored = self._payload.file.array(name)
        found: Int64Array = np.maximum.accumulate(np.where(self._intact[name], stored, 0))
        return found


def _of_bits(intact: BoolArray, n: int) -> BoolArray:
    """The entries ``(n,)`` whose bits are in bytes that are intact."""
    bits: BoolArray = np.repeat(intact, 8)[:n]
    return bits

"""The columns of a payload: which types they have, and how they agree between additions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float32", "float64")
TYPES = ("bool", *INTEGERS, *FLOATS, "string", "date")
"""Types of a column, beside timestamps."""
TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, ([^\],]+))?\]")
"""``timestamp[us]``, or with a time zone ``timestamp[us, UTC]``."""


@dataclass(frozen=True)
class Column:
    """A column: its name and its type, such as ``int64``, ``string`` or ``timestamp[us, UTC]``."""

    name: str
    type: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"{self.name!r} is no name of a column")
        if self.type not in TYPES and not TIMESTAMP.fullmatch(self.type):
            raise ValueError(f"{self.type!r} is no type of a column")

    @property
    def family(self) -> str:
        """``number``, ``string``, ``bool``, ``date`` or ``timestamp``: what can be compared."""
        if self.type in INTEGERS or self.type in FLOATS:
            return "number"
        return self.type.split("[")[0]

    @property
    def arrow_type(self) -> Any:
        """The type of the Arrow array."""
        arrow = import_extra("pyarrow", extra=EXTRA)
        if self.type == "string":
            return arrow.large_string()
        if self.type == "date":
            return arrow.date32()
        found = TIMESTAMP.fullmatch(self.type)
        if found:
            return arrow.timestamp(found[1], tz=found[2])
        return arrow.bool_() if self.type == "bool" else getattr(arrow, self.type)()


def type_of(name: str, kind: Any) -> str:
    """The type of a column of the Arrow type ``kind``.

    Raises
    ------
    TypeError
        If there is none, saying what to do.
    """
    types = import_extra("pyarrow", extra=EXTRA).types
    if types.is_dictionary(kind):
        return type_of(name, kind.value_type)
    if types.is_timestamp(kind):
        return f"timestamp[{kind.unit}, {kind.tz}]" if kind.tz else f"timestamp[{kind.unit}]"
    view = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(kind) or types.is_large_string(kind) or view(kind):
        return "string"
    if types.is_date(kind):
        return "date"
    if types.is_floating(kind):
        return "float64" if types.is_float64(kind) else "float32"
    if types.is_boolean(kind) or types.is_integer(kind):
        return str(kind)
    hint = "cast it"
    if types.is_null(kind):
        hint = "all of its values are missing: give it a type, as in pyarrow.nulls(n, type)"
    elif types.is_nested(kind):
        hint = "store it as JSON text"
    raise TypeError(
        f"payload column {name!r} has Arrow type {kind}; columns are bool, integers, float32, "
        f"float64, string, date or timestamp: {hint}"
    )


def agree(known: Sequence[Column], table: Any) -> tuple[tuple[Column, ...], Any]:
    """All columns when ``table`` is added to ``known`` ones, and the table in their types.

    Values are converted only if none of them changes: integers become floats, not the reverse.

    Raises
    ------
    TypeError, ValueError
        If a column has another type than before, or one that no column has.
    """
    arrow = import_extra("pyarrow", extra=EXTRA)
    types = {column.name: column for column in known}
    arrays = []
    for name, values in zip(table.column_names, table.columns, strict=True):
        column = types.get(name)
        if column is None:
            column = types[name] = Column(name, type_of(name, values.type))
        arrays.append(_convert(column, values))
    return tuple(types.values()), arrow.table(arrays, names=table.column_names)


def complete(columns: Sequence[Column], table: Any, length: int) -> Any:
    """The table with exactly these columns; null where it has none."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    there = [] if table is None else table.column_names
    return arrow.table(
        [
            table.column(c.name) if c.name in there else arrow.nulls(length, c.arrow_type)
            for c in columns
        ],
        names=[column.name for column in columns],
    )


def _convert(column: Column, values: Any) -> Any:
    """The values in the type of the column; TypeError if one of them would change."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    if arrow.types.is_null(values.type):
        return values.cast(column.arrow_type)
    came = Column(column.name, type_of(column.name, values.type))
    if came.family == column.family:
        try:
            cast = values.cast(column.arrow_type)
        except arrow.ArrowInvalid as error:
            why = str(error)
        else:
            if came.type != "float64" or column.type != "float32" or _same(values, cast):
                return cast
            why = "a value has more digits"
        raise TypeError(f"payload column {column.name!r} is {column.type}, {came.type} came: {why}")
    raise TypeError(f"payload column {column.name!r} is {column.type}, {came.type} came")


def _same(values: Any, cast: Any) -> bool:
    before, after = (array.drop_null().to_numpy() for array in (values, cast))
    return bool(np.array_equal(before, after, equal_nan=True))

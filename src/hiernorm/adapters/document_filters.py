"""Filters of documents as conditions of a search: the fields of metadata and what is asked of them.

Every part is true or false, also where a document lacks the field, as the frameworks define it: no
document without a year has ``year = 2020``, and each of them has ``year != 2020``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from hiernorm.adapters.document_fields import (
    ITEM_END,
    LIST,
    PREFIXES,
    TIME,
    as_time,
    encode_item,
    encode_list,
)

NUMBER = "number"
FAMILIES = {"int64": NUMBER, "float64": NUMBER}
"""Types that are compared with one another."""


class Fields:
    """The fields of documents, as conditions name them.

    Parameters
    ----------
    columns
        Name to type of the payload columns.
    names
        Fields that are in a certain column, such as ``{"content": "text"}``.

    Examples
    --------
    >>> fields = Fields({"meta.year": "int64", "text": "string"})
    >>> fields.order("year", ">=", 2020)
    '("meta.year" is not null and "meta.year" >= 2020)'
    >>> fields.equal("city", "Rome")
    'false'
    """

    def __init__(self, columns: Mapping[str, str], names: Mapping[str, str] | None = None) -> None:
        self._columns = columns
        self._names = names or {}

    def without_names(self) -> Fields:
        """The fields of metadata only."""
        return Fields(self._columns)

    def equal(self, field: str, value: Any) -> str:
        """Whether the field has this value; None: whether it has none."""
        if value is None:
            return self.missing(field)
        return self._compare(field, "=", value)

    def among(self, field: str, values: Iterable[Any]) -> str:
        """Whether the field has one of the values."""
        return any_of([self.equal(field, value) for value in values])

    def order(self, field: str, sign: str, value: Any) -> str:
        """``<``, ``<=``, ``>`` or ``>=``; texts that are dates or times are compared as such."""
        if value is None:
            return "false"
        if isinstance(value, (bool, list, tuple)):
            raise TypeError(
                f"filter: {field!r} {sign} {value!r}: only numbers, texts and times have an order"
            )
        moment = as_time(value)
        return self._compare(field, sign, value if moment is None else moment)

    def has_item(self, field: str, value: Any) -> str:
        """Whether the field is a list with this item."""
        pattern = f"%{ITEM_END}{encode_item(value)}{ITEM_END}%"
        return self._any(field, LIST, f"like {_text(pattern)}")

    def has_text(self, field: str, text: str) -> str:
        """Whether the field is a text with this part."""
        return self._any(field, "string", f"like {_text(_pattern(text))}")

    def missing(self, field: str) -> str:
        """Whether the field has no value."""
        if field in self._names:
            columns = [name for name in [self._names[field]] if name in self._columns]
        else:
            split = [(name, name.split(".", 1)) for name in self._columns]
            columns = [
                name
                for name, (prefix, *rest) in split
                if prefix in PREFIXES and f"{''.join(rest)}.".startswith(f"{field}.")
            ]
        return all_of([f"{_name(column)} is null" for column in columns])

    def _compare(self, field: str, sign: str, value: Any) -> str:
        if isinstance(value, bool):
            return self._any(field, "bool", f"{sign} {str(value).lower()}")
        if isinstance(value, (int, float)):
            if not math.isfinite(value):
                raise ValueError(f"filter: {field!r} {sign} {value}: the number must be finite")
            return self._any(field, NUMBER, f"{sign} {value!r}")
        if isinstance(value, str):
            return self._any(field, "string", f"{sign} {_text(value)}")
        if isinstance(value, (list, tuple)):
            return self._any(field, LIST, f"{sign} {_text(encode_list(value))}")
        if isinstance(value, date) and (moment := as_time(value)) is not None:
            return self._any(field, TIME, f"{sign} {_text(moment.isoformat())}")
        raise TypeError(
            f"filter: {field!r} {sign} {value!r}: expected a text, a number, true or false, a "
            f"time or a list, got {type(value).__name__}"
        )

    def _any(self, field: str, family: str, predicate: str) -> str:
        """Whether the predicate is true of one of the field's columns of a family."""
        found = [_name(name) for name in self._names_of(field, family)]
        return any_of([f"{name} is not null and {name} {predicate}" for name in found])

    def _names_of(self, field: str, family: str) -> list[str]:
        if field in self._names:
            there = self._names[field] in self._columns and family == "string"
            return [self._names[field]] if there else []
        names = [f"{prefix}.{field}" for prefix in PREFIXES]
        return [name for name in names if name in self._columns and self._family(name) == family]

    def _family(self, column: str) -> str:
        prefix = column.split(".", 1)[0]
        kind = self._columns[column]
        return prefix if prefix in (LIST, TIME) else FAMILIES.get(kind, kind)


def all_of(conditions: Sequence[str]) -> str:
    """The condition that all are true; without any it is."""
    return f"({' and '.join(conditions)})" if conditions else "true"


def any_of(conditions: Sequence[str]) -> str:
    """The condition that one is true; without any it is not."""
    return f"({' or '.join(conditions)})" if conditions else "false"


def none_of(conditions: Sequence[str]) -> str:
    """The condition that none is true."""
    return f"not {any_of(conditions)}"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _pattern(part: str) -> str:
    """The pattern of ``like`` for texts with this part.

    Arrow takes a backslash for itself unless the pattern has another special character.
    """
    if "%" in part or "_" in part or part.endswith("\\"):
        for special in ("\\", "%", "_"):
            part = part.replace(special, f"\\{special}")
    return f"%{part}%"

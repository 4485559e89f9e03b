"""Metadata of documents as payload columns: which column holds which values of a field.

A payload column has one type, a field of metadata may have any. So the values of a field ``year``
are in ``meta.year``, and values of another type than the first one's in a column of their own:
``string.year``. Lists and times have one more column, which only filters read:

==============  =====================================================================
column          values
==============  =====================================================================
``meta.year``   of the type that came first: ``bool``, ``int64``, ``float64``, ``string``
``int64.year``  of another of these types
``list.tags``   lists, an item per line
``time.date``   texts that are dates or times (ISO 8601), as times; without a zone: UTC
==============  =====================================================================

A field of nested metadata has the name ``author.name``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any

META, LIST, TIME = "meta", "list", "time"
PREFIXES = (META, "bool", "int64", "float64", "string", LIST, TIME)
INT64 = range(-(2**63), 2**63)
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ].*)?")
ESCAPES = {"~": "~0", "\n": "~1", "%": "~2", "_": "~3", "\\": "~4"}
"""Characters that end an item, or that a pattern of ``like`` would not take as they are."""
ITEM_END = "\n"


def to_json(what: str, value: Any) -> str:
    """``value`` as JSON text; TypeError that names the field if it is not JSON."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        if isinstance(value, Mapping):
            for field, part in value.items():
                to_json(f"{what} field {field!r}", part)
        elif isinstance(value, (list, tuple)):
            for at, part in enumerate(value):
                to_json(f"{what} item {at}", part)
        raise TypeError(
            f"{what} is {type(value).__name__}, which JSON does not have: store a text or a number"
        ) from error


def as_time(value: Any) -> datetime | None:
    """The moment in UTC that a datetime, a date or an ISO 8601 text stands for, or None.

    Examples
    --------
    >>> as_time("2020-01-31T12:00:00+02:00")
    datetime.datetime(2020, 1, 31, 10, 0, tzinfo=datetime.timezone.utc)
    >>> as_time("yesterday") is None
    True
    """
    if isinstance(value, str) and ISO_DATE.fullmatch(value):
        try:
            value = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value))
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    try:
        return value.astimezone(timezone.utc)
    except OverflowError:
        return None


def encode_item(value: Any) -> str:
    """An item of a list as a line of text; equal items are equal lines.

    Examples
    --------
    >>> encode_item("50%"), encode_item(2), encode_item(2.0)
    ('s50~2', 'n2', 'n2')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        kind, text = "s", value
    else:
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        kind, text = "n" if numeric else "j", json.dumps(value, sort_keys=True)
    return kind + "".join(ESCAPES.get(character, character) for character in text)


def encode_list(values: Sequence[Any]) -> str:
    """A list as text: an end of line, then a line per item.

    Examples
    --------
    >>> encode_list(["a", 1]).split()
    ['sa', 'n1']
    """
    return ITEM_END + "".join(encode_item(value) + ITEM_END for value in values)


def flatten(metadata: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of metadata and of what is nested in it, by their names with dots.

    Examples
    --------
    >>> flatten({"year": 2020, "author": {"name": "Ada"}})
    {'year': 2020, 'author.name': 'Ada'}
    """
    fields: dict[str, Any] = {}
    for name, value in metadata.items():
        parts = {f"{prefix}{name}": value}
        if isinstance(value, Mapping):
            parts = flatten(value, f"{prefix}{name}.")
        for field, part in parts.items():
            if field in fields:
                raise ValueError(f"metadata has the field {field!r} twice: rename one")
            fields[field] = part
    return fields


def columns_of(
    metadata: Sequence[Mapping[str, Any]], types: Mapping[str, str]
) -> dict[str, list[Any]]:
    """The metadata of new documents as columns, beside those that are there with their types.

    Examples
    --------
    >>> columns_of([{"year": 2020}, {"year": "about 1900"}], {})
    {'meta.year': [2020, None], 'string.year': [None, 'about 1900']}
    """
    known: dict[str, str] = dict(types)
    columns: dict[str, list[Any]] = {}
    for row, fields in enumerate(map(flatten, metadata)):
        for field, value in fields.items():
            for kind, part in _kinds(field, value).items():
                name = _column(field, kind, known)
                columns.setdefault(name, [None] * len(metadata))[row] = part
    return columns


def _column(field: str, kind: str, types: MutableMapping[str, str]) -> str:
    if kind in (LIST, TIME):
        return f"{kind}.{field}"
    if types.setdefault(f"{META}.{field}", kind) == kind:
        return f"{META}.{field}"
    return f"{kind}.{field}"


def _kinds(field: str, value: Any) -> dict[str, Any]:
    """What the columns of a field hold for a value."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        if value not in INT64:
            raise ValueError(f"metadata field {field!r} is {value}: integers have 64 bits at most")
        return {"int64": value}
    if isinstance(value, float):
        return {"float64": value}
    if isinstance(value, str):
        moment = as_time(value)
        return {"string": value} | ({} if moment is None else {TIME: moment})
    if isinstance(value, (list, tuple)):
        return {LIST: encode_list(value)}
    raise TypeError(
        f"metadata field {field!r} is {type(value).__name__}: store a text, a number, true or "
        "false, or a list of these"
    )

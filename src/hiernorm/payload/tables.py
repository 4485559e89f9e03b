"""Tables: anything with named columns becomes an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hiernorm.array_types import Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, ID, KEY
from hiernorm.payload.columns import Column

KINDS = "an Arrow table, a pandas or polars frame, a dict of columns or a list of dicts"


def as_table(payload: Any) -> Any:
    """``payload`` as an Arrow table.

    Parameters
    ----------
    payload
        An Arrow table or record batch, a pandas, polars or other frame that exports Arrow, a dict
        of columns, or a list of one dict per row (names that a row lacks are null).

    Examples
    --------
    >>> as_table({"lang": ["en", "de"], "year": [2020, None]}).to_pylist()
    [{'lang': 'en', 'year': 2020}, {'lang': 'de', 'year': None}]
    >>> as_table([{"lang": "en"}, {"year": 2021}]).to_pylist()
    [{'lang': 'en', 'year': None}, {'lang': None, 'year': 2021}]
    """
    arrow = import_extra("pyarrow", extra=EXTRA)
    if isinstance(payload, arrow.Table):
        return _checked(payload)
    if isinstance(payload, arrow.RecordBatch):
        return _checked(arrow.Table.from_batches([payload]))
    if isinstance(payload, Mapping):
        return _checked(_from_columns(payload))
    if type(payload).__module__.split(".")[0] == "pandas":
        return _checked(arrow.Table.from_pandas(payload, preserve_index=False))
    if hasattr(payload, "__arrow_c_stream__"):
        return _checked(arrow.table(payload))
    if isinstance(payload, Sequence) and not isinstance(payload, (str, bytes, os.PathLike)):
        return _checked(_from_rows(payload))
    raise TypeError(f"payload must be {KINDS}, got {type(payload).__name__}")


def check_rows(table: Any, count: int) -> None:
    """Raise ValueError unless the table has ``count`` rows."""
    if len(table) != count:
        raise ValueError(f"{count} vectors need {count} rows of payload, got {len(table)}")


def named_columns(columns: Sequence[Column], names: Sequence[str] | None) -> list[Column]:
    """The columns with these names, all without; ValueError for a name that none has."""
    if names is None:
        return list(columns)
    known = {column.name: column for column in columns}
    for name in names:
        if name not in known:
            there = ", ".join(known) or "none"
            raise ValueError(f"there is no column {name!r}; columns are {there}")
    return [known[name] for name in names]


def with_ids(table: Any, ids: Int64Array) -> Any:
    """The table with the column ``id`` in front; None has no other column."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    if table is None or not table.column_names:
        return arrow.table({ID: ids})
    return table.add_column(0, ID, arrow.array(ids))


def add_keys(table: Any, keys: list[str]) -> Any:
    """The table with the string keys in front; None has no other column."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    values = arrow.array(keys, arrow.large_string())
    if table is None:
        return arrow.table({KEY: values})
    if KEY in table.column_names:
        raise ValueError(f"payload column {KEY!r}: that is the name of the string key; rename it")
    return table.add_column(0, KEY, values)


def _checked(table: Any) -> Any:
    names = table.column_names
    for name in names:
        if name == ID:
            raise ValueError(f"payload column {name!r}: that is the name of the id; rename it")
        if not name:
            raise ValueError("a payload column has no name")
        if names.count(name) > 1:
            raise ValueError(f"payload column {name!r} is there twice")
    return table.replace_schema_metadata(None)


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    arrow = import_extra("pyarrow", extra=EXTRA)
    arrays = {name: _array(name, values) for name, values in columns.items()}
    lengths = {len(values) for values in arrays.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{name!r} has {len(values)}" for name, values in arrays.items())
        raise ValueError(f"payload columns have different numbers of values: {told}")
    return arrow.table(list(arrays.values()), names=list(arrays))


def _from_rows(rows: Sequence[Any]) -> Any:
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"payload must be {KINDS}; row {number} of the list is {type(row).__name__}"
            )
        names |= dict.fromkeys(row)
    return _from_columns({name: [row.get(name) for row in rows] for name in names})


def _array(name: Any, values: Any) -> Any:
    arrow = import_extra("pyarrow", extra=EXTRA)
    if not isinstance(name, str):
        raise TypeError(f"payload columns have names that are strings, got {name!r}")
    if isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(
            f"payload column {name!r} must have one value per vector, got {type(values).__name__}"
        )
    try:
        return arrow.array(values)
    except (arrow.ArrowException, UnicodeError, OverflowError) as error:
        raise TypeError(
            f"payload column {name!r} has values of different types, or of a type that Arrow "
            f"does not have: {error}"
        ) from None

"""Conditions on columns: a text or an Arrow expression, and which rows of a table it is true for.

Nothing of a text is ever executed: it is parsed (:mod:`hiernorm.payload.syntax`), its names are
looked up among the columns, its values are converted to their types, and Arrow compares them. A
comparison with a missing value is neither true nor false, as in SQL; rows are chosen where the
condition is true.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import partial
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA
from hiernorm.payload.columns import FLOATS, INTEGERS, Column
from hiernorm.payload.syntax import (
    Among,
    Comparison,
    Condition,
    IsNull,
    Joined,
    Like,
    Literal,
    Not,
    Operand,
    Truth,
    fail,
    parse,
)

Evaluate = Callable[[Any], Any]
"""From a table to an Arrow array of booleans, null where the condition is neither."""
MASK = "chosen"
FUNCTIONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""Arrow's names of the comparisons."""
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison with its sides exchanged."""


@dataclass(frozen=True)
class BoundCondition:
    """A condition with the columns that it is about, some of which a segment may not have."""

    where: Any
    columns: tuple[Column, ...]


def is_condition(where: Any) -> bool:
    """Whether ``where`` is a condition on columns: a text, or a pyarrow expression."""
    compute = sys.modules.get("pyarrow.compute")
    return isinstance(where, str) or (compute is not None and isinstance(where, compute.Expression))


def compile_condition(where: Any, columns: Sequence[Column]) -> Callable[[Any], BoolArray]:
    """A function of a table with ``columns``: for which of its rows the condition is true.

    Parameters
    ----------
    where
        A text, or a ``pyarrow.compute.Expression``.
    columns
        The columns of all tables.

    Raises
    ------
    ValueError
        If the text is no condition on these columns, with the position of what is wrong.

    Examples
    --------
    >>> import pyarrow
    >>> find = compile_condition("year >= 2020 and lang = 'en'", [Column("year", "int64"),
    ...     Column("lang", "string")])
    >>> find(pyarrow.table({"year": [2019, 2021, None], "lang": ["en", "en", "en"]})).tolist()
    [False, True, False]
    """
    if isinstance(where, str):
        return partial(_choose, _Compiler(where, columns).compile(parse(where)))
    return partial(_choose, partial(_evaluate, where))


def _choose(evaluate: Evaluate, table: Any) -> BoolArray:
    arrow = import_extra("pyarrow", extra=EXTRA)
    found = evaluate(table)
    if not arrow.types.is_boolean(found.type):
        raise ValueError(f"where: the expression must be true or false, it is {found.type}")
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _evaluate(expression: Any, table: Any) -> Any:
    """The values of an Arrow expression."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    acero = import_extra("pyarrow.acero", extra=EXTRA)
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions([expression], [MASK])),
    ]
    try:
        # One thread keeps the order of the rows.
        found = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, arrow.ArrowKeyError) as error:
        names = ", ".join(table.column_names)
        what = str(error).splitlines()[0]
        raise ValueError(f"where: {what}; columns are {names}") from None
    return found.column(MASK).combine_chunks()


class _Compiler:
    """From the tree of a condition to a function of a table.

    The function calls Arrow for one predicate after the other. A single Arrow expression of the
    whole would be visited by recursion in native code, which long conditions can crash.
    """

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self._text = text
        self._columns = {column.name: column for column in columns}
        self._arrow = import_extra("pyarrow", extra=EXTRA)
        self._compute = import_extra("pyarrow.compute", extra=EXTRA)

    def compile(self, node: Condition) -> Evaluate:
        """The function of a tree."""
        if isinstance(node, Joined):
            return self._join(node.word, [self.compile(part) for part in node.parts])
        if isinstance(node, Not):
            inner = self.compile(node.part)
            return lambda table: self._compute.invert(inner(table))
        if isinstance(node, Comparison):
            return self._compare(node)
        if isinstance(node, Among):
            return self._among(node)
        if isinstance(node, Like):
            column = self._column(node.operand, "like needs a column of strings", ("string",))
            return self._call("match_like", column, str(node.pattern.value))
        if isinstance(node, IsNull):
            return self._call("is_null", self._column(node.operand))
        return self._truth(node)

    def _call(self, function: str, column: Column, *arguments: Any) -> Evaluate:
        call = getattr(self._compute, function)
        return lambda table: call(_values(table, column), *arguments)

    def _join(self, word: str, parts: list[Evaluate]) -> Evaluate:
        join = self._compute.and_kleene if word == "and" else self._compute.or_kleene

        def evaluate(table: Any) -> Any:
            found = parts[0](table)
            for part in parts[1:]:
                found = join(found, part(table))
            return found

        return evaluate

    def _compare(self, node: Comparison) -> Evaluate:
        left, sign, right = node.left, node.operator, node.right
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                fail(self._text, left.at, "a comparison needs a column")
            left, sign, right = right, FLIPPED.get(sign, sign), left
        column = self._column(left)
        if column.type == "bool" and sign not in ("=", "!="):
            fail(self._text, node.at, "bool columns are compared by = and !=")
        if isinstance(right, Literal):
            value = self._value(right, column)
            if column.type in INTEGERS:
                return self._compare_integers(column, sign, value)
            return self._call(FUNCTIONS[sign], column, self._arrow.scalar(value, column.arrow_type))
        other = self._column(right)
        if other.family != column.family:
            fail(self._text, node.at, f"{column.type} and {other.type} cannot be compared")
        call = getattr(self._compute, FUNCTIONS[sign])
        kind = self._common_type(column, other)

        def compare(table: Any) -> Any:
            sides = [_values(table, side) for side in (column, other)]
            if kind is not None:
                sides = [side.cast(kind, safe=False) for side in sides]
            return call(*sides)

        return compare

    def _common_type(self, column: Column, other: Column) -> Any:
        """The type in which two columns are compared, where Arrow would refuse large integers."""
        types = {column.type, other.type}
        if column.family != "number" or len(types) == 1:
            return None
        if types & set(FLOATS):
            return self._arrow.float64()
        return self._arrow.decimal128(20) if "uint64" in types else None

    def _compare_integers(self, column: Column, sign: str, value: int | float) -> Evaluate:
        """Compare with any number exactly: nothing is rounded to a float."""
        least, most = _limits(column)
        if not least <= value <= most:  # all integers of the type are on one side of it
            if value > most:
                return self._constant(column, sign in ("!=", "<", "<="))
            return self._constant(column, sign in ("!=", ">", ">="))
        whole = math.floor(value)
        if whole != value:
            if sign in ("=", "!="):
                return self._constant(column, sign == "!=")
            sign = "<=" if sign in ("<", "<=") else ">"
        return self._call(FUNCTIONS[sign], column, self._arrow.scalar(whole, column.arrow_type))

    def _constant(self, column: Column, truth: bool) -> Evaluate:
        """The same for every value of a column, and null where there is none."""
        null = self._arrow.scalar(None, self._arrow.bool_())
        return lambda table: self._compute.if_else(_values(table, column).is_null(), null, truth)

    def _among(self, node: Among) -> Evaluate:
        column = self._column(node.operand)
        values = [self._value(literal, column) for literal in node.values]
        if column.type in INTEGERS:
            least, most = _limits(column)
            values = [int(v) for v in values if least <= v <= most and math.floor(v) == v]
        chosen = self._call("is_in", column, self._arrow.array(values, column.arrow_type))
        # Arrow says false for a missing value: it must be unknown, or `not in` would choose it.
        unknown = self._constant(column, False)
        return lambda table: self._compute.or_kleene(chosen(table), unknown(table))

    def _truth(self, node: Truth) -> Evaluate:
        operand = node.operand
        if not isinstance(operand, Literal):
            column = self._column(operand, "expected a comparison", ("bool",))
            return lambda table: _values(table, column)
        if not isinstance(operand.value, bool):
            fail(self._text, operand.at, f"{operand.value!r} is neither true nor false")
        truth = self._arrow.scalar(operand.value)
        return lambda table: self._arrow.repeat(truth, len(table))

    def _column(
        self, operand: Operand, what: str = "", types: tuple[str, ...] | None = None
    ) -> Column:
        if isinstance(operand, Literal):
            fail(self._text, operand.at, f"expected a column, got the value {operand.value!r}")
        column = self._columns.get(operand.name)
        if column is None:
            near = difflib.get_close_matches(operand.name, self._columns, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            names = ", ".join(self._columns)
            what = f"there is no column {operand.name!r}{hint}; columns are {names}"
            fail(self._text, operand.at, what)
        if types is not None and column.type not in types:
            fail(self._text, operand.at, f"{what}, {column.name!r} is {column.type}")
        return column

    def _value(self, literal: Literal, column: Column) -> Any:
        """The value of a literal in the type of the column it is compared with."""
        value, kind = literal.value, column.family
        if kind == "number" and not isinstance(value, (str, bool)):
            return float(value) if column.type in FLOATS else value
        if kind == "string" and isinstance(value, str):
            return value
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind in ("date", "timestamp") and isinstance(value, str):
            return self._moment(literal, column)
        wanted = {
            "number": "a number",
            "string": "a text in single quotes",
            "bool": "true or false",
            "date": "a date such as '2020-01-31'",
            "timestamp": "a time such as '2020-01-31 12:00:00'",
        }[kind]
        fail(
            self._text,
            literal.at,
            f"column {column.name!r} is {column.type} and needs {wanted}, got {value!r}",
        )

    def _moment(self, literal: Literal, column: Column) -> Any:
        text = str(literal.value)
        try:
            if column.type == "date":
                return date.fromisoformat(text)
            found = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
        except ValueError:
            what = f"{text!r} is no {column.family} such as '2020-01-31'"
            fail(self._text, literal.at, f"{what}, which column {column.name!r} needs")
        zoned = "," in column.type
        if zoned and found.tzinfo is None:
            return found.replace(tzinfo=timezone.utc)
        if not zoned and found.tzinfo is not None:
            what = f"column {column.name!r} has no time zone, {text!r} has one"
            fail(self._text, literal.at, what)
        return found


def _values(table: Any, column: Column) -> Any:
    """The values of a column in one array; copied only if they are in several."""
    values = table.column(column.name)
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _limits(column: Column) -> tuple[int, int]:
    limits = np.iinfo(column.type)
    return int(limits.min), int(limits.max)

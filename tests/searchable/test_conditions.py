"""Conditions on columns: SQL's three-valued logic, exact comparisons, and errors that point."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiernorm.payload.columns import Column
from hiernorm.payload.conditions import compile_condition

arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")

COLUMNS = [
    Column("n", "int64"),
    Column("small", "uint8"),
    Column("x", "float64"),
    Column("half", "float32"),
    Column("word", "string"),
    Column("ok", "bool"),
    Column("day", "date"),
    Column("at", "timestamp[us, UTC]"),
    Column("two words", "int64"),
    Column("big", "uint64"),
]
ROWS: list[dict[str, Any]] = [
    {
        "big": 2**64 - 1,
        "n": 1,
        "small": 255,
        "x": 0.5,
        "half": 0.1,
        "word": "en",
        "ok": True,
        "day": date(2020, 1, 1),
    },
    {"big": 0, "n": 2**62, "small": 0, "x": float("nan"), "half": 2.0, "word": "", "ok": False},
    {"big": 1, "n": -7, "x": -1e300, "word": "it's", "day": date(1999, 12, 31), "two words": 3},
    {},
]
NAMES = [column.name for column in COLUMNS]
TABLE = arrow.table(
    [arrow.array([r.get(c.name) for r in ROWS], c.arrow_type) for c in COLUMNS], names=NAMES
)


def _chosen(text: str) -> list[int]:
    return np.flatnonzero(compile_condition(text, COLUMNS)(TABLE)).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n = 1", [0]),
        ("n != 1", [1, 2]),
        ("n<>1", [1, 2]),
        ("1 < n", [1]),
        ("n >= -7 AND n <= 1", [0, 2]),
        ("n > 0.5", [0, 1]),
        ("n = 0.5", []),
        ("n != 0.5", [0, 1, 2]),
        ("n < 4611686018427387904", [0, 2]),
        ("n < 4611686018427387905", [0, 1, 2]),
        ("n < 1e300", [0, 1, 2]),
        ("n > 99999999999999999999", []),
        ("small > -1", [0, 1]),
        ("small < 256", [0, 1]),
        ("small in (255, 256, -1, 0.5)", [0]),
        ("small not in (255, 256)", [1]),
        ("n not in (1)", [1, 2]),
        ("not (n in (1))", [1, 2]),
        ("x < 1", [0, 2]),
        ("x != 0.5", [1, 2]),
        ("half = 0.1", [0]),
        ("word = 'en'", [0]),
        ("word = 'it''s'", [2]),
        ("word = ''", [1]),
        ("word like 'e_'", [0]),
        ("word like '%t%s'", [2]),
        ("word not like 'e%'", [1, 2]),
        ("word in ('en', 'de')", [0]),
        ("word > 'a'", [0, 2]),
        ("ok", [0]),
        ("not ok", [1]),
        ("ok = false", [1]),
        ("ok is null", [2, 3]),
        ("n is not null", [0, 1, 2]),
        ("not n is null", [0, 1, 2]),
        ("day >= '2000-01-01'", [0]),
        ("day between '1990-01-01' and '2020-01-01'", [0, 2]),
        ("day not between '1990-01-01' and '2000-01-01'", [0]),
        ('"two words" = 3', [2]),
        ("`two words` = 3", [2]),
        ("n = small", []),
        ("x < n", [0, 2]),
        ("big > n", [0, 2]),
        ("big = small", [1]),
        ("ok or n < 0", [0, 2]),
        ("n = 1 or n = -7 and ok", [0]),
        ("(n = 1 or n = -7) and day < '2000-01-01'", [2]),
        ("not not not ok", [1]),
        ("true", [0, 1, 2, 3]),
        ("false or ok", [0]),
        ("n is null or word is null", [3]),
        ("\n\tn\n=\n1", [0]),
    ],
)
def test_a_condition_chooses_its_rows(text: str, rows: list[int]) -> None:
    assert _chosen(text) == rows


def test_times_are_compared_in_their_zone() -> None:
    at = ["2020-01-31T12:00:00+00:00", "2020-01-31T12:00:00+01:00", None]
    values = arrow.array(at).cast(arrow.timestamp("us", "UTC"))
    choose = {
        text: compile_condition(f"at >= '{text}'", COLUMNS)(arrow.table({"at": values})).tolist()
        for text in ("2020-01-31", "2020-01-31 12:00", "2020-01-31T13:00+01:00", "2020-01-31T12Z")
    }
    assert choose["2020-01-31"] == [True, True, False]
    assert all(found == [True, False, False] for t, found in choose.items() if len(t) > 10)


@pytest.mark.parametrize(
    ("text", "what", "at"),
    [
        ("", "expected a column or a value, got the end", 0),
        ("n =", "expected a column or a value, got the end", 3),
        ("nn = 1", "there is no column 'nn' (did you mean 'n'?); columns are n, small, x", 0),
        ("n = 1 and wird = 'a'", "there is no column 'wird' (did you mean 'word'?)", 10),
        ("n = 'a'", "column 'n' is int64 and needs a number, got 'a'", 4),
        ("n = true", "column 'n' is int64 and needs a number, got True", 4),
        ("word = 3", "column 'word' is string and needs a text in single quotes, got 3", 7),
        ("ok = 'yes'", "column 'ok' is bool and needs true or false, got 'yes'", 5),
        ("ok < true", "bool columns are compared by = and !=", 3),
        ("day = '31.1.2020'", "'31.1.2020' is no date such as '2020-01-31'", 6),
        ("day = 2020", "needs a date such as '2020-01-31', got 2020", 6),
        ("n = null", "nothing equals null: write 'is null' or 'is not null'", 4),
        ("n is 3", "expected 'null', got '3'", 5),
        ("n like 'a'", "like needs a column of strings, 'n' is int64", 0),
        ("word like n", "like needs a pattern in single quotes", 10),
        ("n in ()", "expected a value, got ')'", 6),
        ("n in (1, word)", "the list of 'in' has values, not columns", 9),
        ("n not 3", "expected 'in', 'between' or 'like' after 'not', got '3'", 6),
        ("n", "expected a comparison, 'n' is int64", 0),
        ("'a'", "'a' is neither true nor false", 0),
        ("1 = 1", "a comparison needs a column", 0),
        ("n = 1 n = 2", "expected 'and', 'or' or the end, got 'n'", 6),
        ("n = 1; drop", "expected a column, a value or an operator, got ';'", 5),
        ("word = 'abc", "got a quote that does not end", 7),
        ("(n = 1", "expected ')', got the end", 6),
        ("n = word", "int64 and string cannot be compared", 2),
        ("(" * 60 + "ok" + ")" * 60, "more than 50 nested parentheses", 50),
    ],
)
def test_an_error_says_what_where_and_which_columns(text: str, what: str, at: int) -> None:
    with pytest.raises(ValueError, match=r"^where, at position ") as caught:
        _chosen(text)
    message, shown, caret = str(caught.value).split("\n")
    assert what in message
    assert message.startswith(f"where, at position {at}: ")
    assert shown[caret.index("^") :].startswith(text[at : at + 3])


def test_a_condition_of_any_length_is_evaluated() -> None:
    assert _chosen(" or ".join(["n = 5"] * 3000 + ["n = 1"])) == [0]
    assert _chosen(f"n in ({', '.join(str(i) for i in range(20_000))})") == [0]


LEAVES: list[tuple[str, list[bool | None]]] = [
    ("ok", [True, False, None, None]),
    ("n > 0", [True, True, False, None]),
    ("word = ''", [False, True, False, None]),
    ("x is null", [False, False, False, True]),
    ("day in ('2020-01-01')", [True, None, False, None]),
]
Tree = Any


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _join(word: str, a: Tree, b: Tree) -> Tree:
    pairs = zip(a[1], b[1], strict=True)
    if word == "and":
        return f"({a[0]}) and ({b[0]})", [_and(x, y) for x, y in pairs]
    return f"({a[0]}) or ({b[0]})", [_not(_and(_not(x), _not(y))) for x, y in pairs]


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.one_of(
            inner.map(lambda t: (f"not ({t[0]})", [_not(v) for v in t[1]])),
            st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(lambda t: _join(*t)),
        ),
        max_leaves=12,
    )
)
def test_logic_has_three_values(tree: Tree) -> None:
    text, values = tree
    assert _chosen(text) == [at for at, value in enumerate(values) if value is True]


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from("n ok='\"`()<>,.-1e9and or not in like is null\n\0é"), max_size=40
    )
)
def test_no_text_does_anything_but_choose_or_explain(text: str) -> None:
    try:
        _chosen(text)
    except ValueError as error:
        if not str(error).startswith("where, at position "):
            raise

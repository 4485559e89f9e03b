"""The syntax of conditions: a text such as ``lang = 'en' and year >= 2020`` becomes a tree.

::

    condition   = term { "or" term }
    term        = factor { "and" factor }
    factor      = { "not" } ( "(" condition ")" | predicate )
    predicate   = operand [ comparison operand
                          | [ "not" ] "in" "(" literal { "," literal } ")"
                          | [ "not" ] "between" operand "and" operand
                          | [ "not" ] "like" string
                          | "is" [ "not" ] "null" ]
    comparison  = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    operand     = column | literal
    literal     = number | 'string' | "true" | "false"
    column      = name | "any name" | `any name`

Keywords may be written in upper case. A quote inside quotes is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

MOST_NESTING = 50
"""Parentheses inside one another."""
KEYWORDS = {"and", "or", "not", "in", "between", "like", "is", "null", "true", "false"}
COMPARISONS = {text: text for text in ("=", "!=", "<", "<=", ">", ">=")} | {"==": "=", "<>": "!="}
TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<name>[^\W\d]\w*(?:\.\w+)*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Name:
    """A column."""

    at: int
    name: str


@dataclass(frozen=True)
class Literal:
    """A value."""

    at: int
    value: str | int | float | bool


Operand = Name | Literal


@dataclass(frozen=True)
class Comparison:
    """``left operator right``."""

    at: int
    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Among:
    """``operand in (values)``."""

    operand: Operand
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Like:
    """``operand like pattern``, where % stands for any text and _ for one character."""

    operand: Operand
    pattern: Literal


@dataclass(frozen=True)
class IsNull:
    """``operand is null``."""

    operand: Operand


@dataclass(frozen=True)
class Truth:
    """A column or a literal that is itself true or false."""

    operand: Operand


@dataclass(frozen=True)
class Not:
    """``not part``."""

    part: Condition


@dataclass(frozen=True)
class Joined:
    """``part and part and ...``, or the same with ``or``."""

    word: str
    parts: tuple[Condition, ...]


Condition = Comparison | Among | Like | IsNull | Truth | Not | Joined


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def fail(text: str, at: int, what: str) -> NoReturn:
    """Raise ValueError that shows where in the condition something is wrong."""
    first = max(0, at - 60)
    shown = re.sub(r"\s", " ", text[first : at + 40])
    raise ValueError(f"where, at position {at}: {what}\n  {shown}\n  {' ' * (at - first)}^")


def parse(text: str) -> Condition:
    """The tree of a condition.

    Raises
    ------
    ValueError
        If the text is no condition, with the position of what is wrong.

    Examples
    --------
    >>> parse("year >= 2020")
    Comparison(at=5, operator='>=', left=Name(at=0, name='year'), right=Literal(at=8, value=2020))
    """
    return _Parser(text).whole()


class _Parser:
    """A recursive descent over the tokens; each method is one rule of the syntax."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._next = 0
        self._nesting = 0

    def whole(self) -> Condition:
        found = self._condition()
        if self._peek().kind != "end":
            self._expect("'and', 'or' or the end")
        return found

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += token.kind != "end"
        return token

    def _is(self, *texts: str) -> bool:
        token = self._peek()
        return token.kind in ("word", "sign") and token.text in texts

    def _accept(self, *texts: str) -> bool:
        found = self._is(*texts)
        self._next += found
        return found

    def _expect(self, what: str) -> NoReturn:
        token = self._peek()
        got = "the end" if token.kind == "end" else repr(token.text)
        fail(self._text, token.at, f"expected {what}, got {got}")

    def _require(self, text: str) -> None:
        if not self._accept(text):
            self._expect(repr(text))

    def _joined(self, word: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _condition(self) -> Condition:
        return self._joined("or", lambda: self._joined("and", self._factor))

    def _factor(self) -> Condition:
        negated = False
        while self._accept("not"):
            negated = not negated
        if self._is("("):
            self._nesting += 1
            if self._nesting > MOST_NESTING:
                fail(self._text, self._peek().at, f"more than {MOST_NESTING} nested parentheses")
            self._take()
            found = self._condition()
            self._require(")")
            self._nesting -= 1
        else:
            found = self._predicate()
        return Not(found) if negated else found

    def _predicate(self) -> Condition:
        left = self._operand("a column or a value")
        token = self._peek()
        if token.kind == "sign" and token.text in COMPARISONS:
            self._take()
            right = self._operand("a column or a value")
            return Comparison(token.at, COMPARISONS[token.text], left, right)
        if self._accept("is"):
            negated = self._accept("not")
            self._require("null")
            return Not(IsNull(left)) if negated else IsNull(left)
        negated = self._accept("not")
        if self._accept("in"):
            found: Condition = Among(left, self._values())
        elif self._accept("between"):
            low = self._operand("a value")
            self._require("and")
            high = self._operand("a value")
            bounds = (
                Comparison(token.at, ">=", left, low),
                Comparison(token.at, "<=", left, high),
            )
            found = Joined("and", bounds)
        elif self._accept("like"):
            pattern = self._operand("a pattern in single quotes")
            if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
                fail(self._text, pattern.at, "like needs a pattern in single quotes")
            found = Like(left, pattern)
        elif negated:
            self._expect("'in', 'between' or 'like' after 'not'")
        else:
            return Truth(left)
        return Not(found) if negated else found

    def _values(self) -> tuple[Literal, ...]:
        self._require("(")
        values = []
        while True:
            operand = self._operand("a value")
            if not isinstance(operand, Literal):
                fail(self._text, operand.at, "the list of 'in' has values, not columns")
            values.append(operand)
            if not self._accept(","):
                break
        self._require(")")
        return tuple(values)

    def _operand(self, what: str) -> Operand:
        token = self._peek()
        if token.kind == "word" and token.text == "null":
            fail(self._text, token.at, "nothing equals null: write 'is null' or 'is not null'")
        if token.kind == "word" and token.text in ("true", "false"):
            return Literal(self._take().at, token.text == "true")
        if token.kind == "name":
            return Name(self._take().at, token.text)
        if token.kind == "string":
            return Literal(self._take().at, token.text)
        if token.kind == "number":
            return Literal(self._take().at, _number(token.text))
        self._expect(what)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _tokenize(text: str) -> Sequence[_Token]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = TOKEN.match(text, at)
        if found is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            what = "a quote that does not end" if text[at] in "'\"`" else f"{text[at]!r}"
            fail(text, at, f"expected a column, a value or an operator, got {what}")
        kind = str(found.lastgroup)
        written = found[kind]
        if kind == "name" and written.lower() in KEYWORDS:
            kind, written = "word", written.lower()
        elif kind in ("string", "quoted"):
            quote = written[0]
            written = written[1:-1].replace(quote * 2, quote)
            kind = "string" if kind == "string" else "name"
        tokens.append(_Token(kind, written, found.start(found.lastgroup or 0)))
        at = found.end()
    return [*tokens, _Token("end", "", end)]

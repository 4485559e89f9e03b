"""What a report is made of: text, tables and pictures, whatever page they end up on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

MISSING = "not run"
"""In a cell whose run is not finished."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table: the head, then rows of as many cells."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture in ``figures/``, and its caption."""

    file: str
    caption: str


Block = Text | Rows | Picture


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    blocks: Sequence[Block]


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits.

    Examples
    --------
    >>> number(12.345), number(0.00123), number(1234.5), number(None)
    ('12.3', '0.00123', '1,234', 'not run')
    """
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.0123), percent(None)
    ('1.23%', 'not run')
    """
    return MISSING if value is None else f"{100 * value:.3g}%"


def ratio(ours: float | None, theirs: float | None) -> str:
    """Ours over theirs; nothing where the paper has no figure, or has zero.

    Examples
    --------
    >>> ratio(3.0, 2.0), ratio(1.0, None), ratio(1.0, 0.0)
    ('1.5', '', '')
    """
    if ours is None or not theirs:
        return ""
    return number(ours / theirs)


def fraction(alpha: float) -> str:
    """Alpha as the paper writes it.

    Examples
    --------
    >>> fraction(0.125), fraction(0)
    ('1/8', '0')
    """
    return str(Fraction(alpha).limit_denominator(1024))

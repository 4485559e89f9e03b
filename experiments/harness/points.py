"""Points of Hierarchical Normalization: K and alpha, and their names."""

from __future__ import annotations

from fractions import Fraction

Point = tuple[int, float]
"""A hierarchical normalisation: (major, alpha)."""

RECOMMENDED: Point = (16, 1 / 8)
FASTEST: Point = (8, 1 / 32)
ALL_POINTS: tuple[Point, ...] = tuple(
    (major, alpha) for major in (16, 8) for alpha in (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
)
"""The paper's ten settings."""


def fraction(alpha: float) -> str:
    """Alpha as the paper writes it.

    Examples
    --------
    >>> fraction(0.125), fraction(0)
    ('1/8', '0')
    """
    return str(Fraction(alpha).limit_denominator(1024))


def point_name(point: Point | None) -> str:
    """Name a normalisation.

    Examples
    --------
    >>> point_name((16, 0.125)), point_name(None)
    ('K16-a1/8', 'plain')
    """
    if point is None:
        return "plain"
    major, alpha = point
    return f"K{major}-a{fraction(alpha)}"


def slug(point: Point | None) -> str:
    """The name of a normalisation as part of a file's name.

    Examples
    --------
    >>> slug((16, 0.125)), slug(None)
    ('K16-a1_8', 'plain')
    """
    return point_name(point).replace("/", "_")

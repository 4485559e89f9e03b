"""What a claim is, and the verdicts on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold here"
UNKNOWN = "not run"

OURS = "ours"
"""The place of a claim that the paper does not make."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, or one of ours.

    Attributes
    ----------
    name
        What it is about, in a few words.
    place, says
        Where it stands, and what it says.
    verdict
        One of the four above.
    evidence
        Figures of ours.
    why
        What explains a verdict other than "holds"; may be empty.
    past
        Where ours goes past the paper; may be empty.
    question
        Whether the paper leaves it open: the answer is "yes" where a claim would hold.
    """

    name: str
    place: str
    says: str
    verdict: str
    evidence: str
    why: str = ""
    past: str = ""
    question: bool = False


def judge(checks: Sequence[bool]) -> str:
    """The verdict: all checks, some of them, none, or none made.

    Examples
    --------
    >>> judge([True, True]), judge([True, False]), judge([False]), judge([])
    ('holds', 'holds in part', 'does not hold here', 'not run')
    """
    if not checks:
        return UNKNOWN
    if all(checks):
        return HOLDS
    return IN_PART if any(checks) else FAILS


def count(checks: Sequence[bool]) -> str:
    """How many checks passed, in words."""
    return f"{sum(checks)} of {len(checks)}"

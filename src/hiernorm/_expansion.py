"""A limit of how far a compressed file may grow: a small one can hold terabytes of zeros."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "HIERNORM_EXPANSION_LIMIT"
"""The environment variable with the number of bytes that every file may grow to."""
DEFAULT_LIMIT = 1 << 30
RATIO = 32
"""A file may also grow to this many times its size; real vectors shrink by much less."""


def require_expansion(path: Path, nbytes: int) -> None:
    """ValueError if the arrays of ``path``, of ``nbytes``, are more than such a file may hold.

    Examples
    --------
    >>> require_expansion(Path(__file__), 1000)
    """
    size, limit = path.stat().st_size, expansion_limit()
    if nbytes > max(limit, RATIO * size):
        raise ValueError(
            f"{path} has {size:,} bytes and would grow to {nbytes:,}; at most {limit:,} are "
            f"allowed, or {RATIO} times its size: set {VARIABLE} to a larger number of bytes if "
            "you trust the file"
        )


def expansion_limit() -> int:
    """HIERNORM_EXPANSION_LIMIT, or its default."""
    setting = os.environ.get(VARIABLE)
    if not setting:
        return DEFAULT_LIMIT
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(f"{VARIABLE} must be a positive number of bytes, got {setting!r}")
    return int(setting)

"""Arrays in the columns ``rows``, ``cols`` and ``data`` of COLMAP's tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import AnyArray
from hiernorm.storage.errors import DamagedError


def to_array(
    what: str, dtype: npt.DTypeLike, rows: object, cols: object, data: bytes | None
) -> AnyArray:
    """The array ``(rows, cols)`` of a blob; ``what`` names it in errors."""
    content = data or b""
    return np.frombuffer(content, dtype).reshape(
        checked_shape(what, np.dtype(dtype).itemsize, rows, cols, len(content))
    )


def checked_shape(
    what: str, item_bytes: int, rows: object, cols: object, found_bytes: int
) -> tuple[int, int]:
    """Rows and columns; DamagedError unless the blob has the bytes of so many items."""
    if not isinstance(rows, int) or not isinstance(cols, int) or min(rows, cols) < 0:
        raise DamagedError(
            f"{what} have the shape {rows!r} x {cols!r}, expected two numbers from 0 on"
        )
    expected = rows * cols * item_bytes
    if found_bytes != expected:
        raise DamagedError(
            f"{what} should take {expected} bytes ({rows} x {cols}), found {found_bytes}"
        )
    return rows, cols

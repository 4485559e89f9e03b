"""Arrays in the columns ``rows``, ``cols`` and ``data`` of COLMAP's tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import AnyArray, Float32Array, UInt8Array
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


def float_width(what: str, width_bytes: int) -> int:
    """The number of float32 values of a row."""
    if width_bytes % 4:
        raise DamagedError(
            f"{what} take {width_bytes} bytes each, which is no number of float32 values"
        )
    return width_bytes // 4


def to_floats(what: str, rows: UInt8Array) -> Float32Array:
    """Rows of bytes as float32 values, which must be finite."""
    width = float_width(what, rows.shape[1])
    floats: Float32Array = rows.view(np.float32)
    finite = np.isfinite(floats).all(axis=1)
    if not finite.all():
        raise DamagedError(
            f"{what}, {width} float32 values each, have NaN or infinity in row "
            f"{int(np.argmin(finite))}"
        )
    return floats

"""Uncompressed BMP pictures, the mosaics of the UBC format, without an imaging library."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import UInt8Array

HEADER_BYTES = 54
GREY_WEIGHTS = np.array([0.114, 0.587, 0.299])
"""Of blue, green and red, the order of a BMP's channels."""


def decode_bitmap(content: bytes, name: str) -> UInt8Array:
    """Return the grey picture ``(height, width)`` of a BMP file's bytes.

    Reads what the UBC scenes hold: 8 bits per pixel with a palette, or 24 bits, uncompressed.

    Parameters
    ----------
    content
        The whole file.
    name
        What errors call it.

    Raises
    ------
    ValueError
        If the file is short, not a BMP, or of another kind of BMP.

    Examples
    --------
    >>> import numpy as np
    >>> from hiernorm.learn.bitmap import decode_bitmap, encode_bitmap
    >>> picture = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> decode_bitmap(encode_bitmap(picture), "a.bmp").tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if len(content) < HEADER_BYTES or content[:2] != b"BM":
        raise ValueError(f"{name} is not a BMP picture ({len(content):,} bytes)")
    start, header, width, height, _, bits, compression = struct.unpack_from("<10xIIiiHHI", content)
    if bits not in (8, 24) or compression != 0 or width <= 0 or height == 0:
        raise ValueError(
            f"{name} must be an uncompressed BMP of 8 or 24 bits per pixel, got {bits} bits, "
            f"compression {compression}, {width}x{abs(height)} pixels"
        )
    stride = (width * bits // 8 + 3) // 4 * 4
    needed = start + stride * abs(height)
    if len(content) < needed:
        raise ValueError(
            f"{name} is cut short: {width}x{abs(height)} pixels need {needed:,} bytes, "
            f"the file has {len(content):,}"
        )
    rows = np.frombuffer(content, np.uint8, stride * abs(height), start).reshape(-1, stride)
    pixels = rows[:, : width * bits // 8]
    if bits == 8:
        colours = np.frombuffer(content, np.uint8, start - 14 - header, 14 + header)
        palette = _grey(colours[: len(colours) // 4 * 4].reshape(-1, 4)[:, :3])
        if len(palette) <= int(pixels.max()):
            raise ValueError(f"{name} has pixels beyond its palette of {len(palette)} colours")
        grey = palette[pixels]
    else:
        grey = _grey(pixels.reshape(abs(height), width, 3))
    return np.ascontiguousarray(grey[::-1] if height > 0 else grey)


def encode_bitmap(picture: npt.NDArray[Any]) -> bytes:
    """Return the bytes of an 8-bit BMP file of the grey ``picture (height, width)``.

    Examples
    --------
    >>> len(encode_bitmap(np.zeros((1024, 1024), np.uint8)))
    1049654
    """
    if picture.ndim != 2 or picture.dtype != np.uint8:
        raise ValueError(
            f"picture must be uint8 (height, width), got {picture.dtype} {picture.shape}"
        )
    height, width = picture.shape
    stride = (width + 3) // 4 * 4
    rows = np.zeros((height, stride), np.uint8)
    rows[:, :width] = picture[::-1]
    palette = np.zeros((256, 4), np.uint8)
    palette[:, :3] = np.arange(256)[:, np.newaxis]
    start = HEADER_BYTES + palette.nbytes
    file_header = struct.pack("<2sIHHI", b"BM", start + rows.nbytes, 0, 0, start)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, rows.nbytes, 2835, 2835, 256, 0)
    return file_header + info + palette.tobytes() + rows.tobytes()


def _grey(colours: UInt8Array) -> UInt8Array:
    """Return the brightness ``(...)`` of ``(..., 3)`` blue, green, red."""
    grey: UInt8Array = np.rint(colours @ GREY_WEIGHTS).astype(np.uint8)
    return grey

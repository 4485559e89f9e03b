"""The size of a picture from the first bytes of its file, before anything is decoded.

A PNG of a hundred kilobytes can hold a billion pixels. OpenCV allocates all of them.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

VARIABLE = "HIERNORM_PIXEL_LIMIT"
"""The environment variable with the number of pixels that a photo may have."""
DEFAULT_LIMIT = 1 << 28
PIXEL_BYTES = 8
"""Bytes of a pixel that is not compressed: four channels of 16 bits."""

_SIZE_TAGS = {256: 0, 257: 1}
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def require_size(file: Path, content: bytes) -> None:
    """ValueError if the picture in ``content`` has more pixels than the limit.

    A picture whose size is not understood is left to OpenCV, which has a limit of its own.
    """
    found = picture_size(content)
    limit = pixel_limit()
    if found is not None and found[0] * found[1] > limit:
        width, height = found
        raise ValueError(
            f"{file} has {width} x {height} pixels, at most {limit:,} are read: set {VARIABLE} to "
            "a larger number if you trust the file"
        )


def require_file_size(file: Path, size: int) -> None:
    """ValueError if a file of ``size`` bytes is larger than any photo with so many pixels."""
    most = PIXEL_BYTES * pixel_limit()
    if size > most:
        raise ValueError(
            f"{file} has {size:,} bytes, at most {most:,} are read: set {VARIABLE} to a larger "
            "number if you trust the file"
        )


def pixel_limit() -> int:
    """HIERNORM_PIXEL_LIMIT, or its default."""
    setting = os.environ.get(VARIABLE)
    if not setting:
        return DEFAULT_LIMIT
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(f"{VARIABLE} must be a positive number of pixels, got {setting!r}")
    return int(setting)


def picture_size(content: bytes) -> tuple[int, int] | None:
    """Width and height; None if the file is no BMP, JPEG, PNG, TIFF or WebP, or ends too early.

    Examples
    --------
    >>> picture_size(bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000a"))
    (3, 10)
    """
    readers = {
        b"\x89PNG": _png,
        b"BM": _bmp,
        b"\xff\xd8": _jpeg,
        b"RIFF": _webp,
        b"II": _tiff,
        b"MM": _tiff,
    }
    for start, read in readers.items():
        if content.startswith(start):
            try:
                return read(content)
            except (struct.error, IndexError):
                return None
    return None


def _png(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", content, 16)
    return width, height


def _bmp(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<ii", content, 18)
    return abs(width), abs(height)


def _jpeg(content: bytes) -> tuple[int, int] | None:
    at = 2
    while True:
        while content[at] != 0xFF or content[at + 1] in (0x00, 0xFF):
            at += 1
        marker = content[at + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # these have no length
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", content, at + 2)[0]


def _webp(content: bytes) -> tuple[int, int] | None:
    kind = content[12:16]
    if kind == b"VP8X":
        return (
            1 + int.from_bytes(content[24:27], "little"),
            1 + int.from_bytes(content[27:30], "little"),
        )
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", content, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _tiff(content: bytes) -> tuple[int, int] | None:
    order = "<" if content.startswith(b"II") else ">"
    at = struct.unpack_from(order + "I", content, 4)[0]
    count = struct.unpack_from(order + "H", content, at)[0]
    found = [0, 0]
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(order + "HH", content, entry)
        if tag in _SIZE_TAGS:
            form = "H" if kind == 3 else "I"
            found[_SIZE_TAGS[tag]] = struct.unpack_from(order + form, content, entry + 8)[0]
    return found[0], found[1]

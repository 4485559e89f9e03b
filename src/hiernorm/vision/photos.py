"""Photos: which files of a folder are photos, and their grey values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hiernorm._regular_files import read_regular
from hiernorm.array_types import UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.picture_size import require_file_size, require_size

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Suffixes of photos, in upper or lower case."""


def list_photos(folder: Path) -> list[Path]:
    """All photos in ``folder`` and below it, in the order of their names on every system.

    Raises FileNotFoundError if there is no such folder or no photo in it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of photos, found none at {folder}")
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith(".")
    ]
    if not found:
        raise FileNotFoundError(
            f"no photo in {folder}: expected names that end in {', '.join(sorted(SUFFIXES))}"
        )
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def is_utf8(name: str) -> bool:
    """Whether the name of a file is text; on some systems it may be any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def read_grey(file: Path) -> UInt8Array:
    """The grey values of a photo, (height, width) uint8, rotated as its EXIF data say.

    Raises FileNotFoundError for a missing file, ValueError if it is not a picture or too large.
    """
    return decode(file, "IMREAD_GRAYSCALE")


def read_photo(file: Path) -> bytes:
    """The contents of the file of a photo.

    Raises OSError if it cannot be read, ValueError if it is larger than a photo may be.
    """
    size = file.stat().st_size
    require_file_size(file, size)
    return read_regular(file, size)


def decode(file: Path | str, *flags: str) -> UInt8Array:
    """A picture as OpenCV decodes it, with ``flags`` such as ``"IMREAD_COLOR"``.

    Raises FileNotFoundError for a missing file, ValueError if it is not a picture or too large.
    """
    cv2 = import_extra("cv2", "vision")
    # Not cv2.imread: it cannot open every name on every system and only returns None if it fails.
    content = read_photo(Path(file))
    require_size(Path(file), content)
    mode = sum(getattr(cv2, flag) for flag in flags)
    try:
        image = cv2.imdecode(np.frombuffer(content, np.uint8), mode) if content else None
    except (cv2.error, MemoryError):
        raise ValueError(f"{file} is larger than OpenCV can read, or damaged") from None
    if image is None:
        raise ValueError(f"{file} is not a picture that OpenCV can read, or it is damaged")
    decoded: UInt8Array = image
    return decoded


def check_grey(image: npt.ArrayLike) -> UInt8Array:
    """``image`` as a contiguous (height, width) uint8 array, or an error that says what came."""
    array = np.asarray(image)
    if array.ndim != 2 or array.dtype != np.uint8 or array.size == 0:
        raise ValueError(
            "expected a grey image, shape (height, width), dtype uint8; "
            f"got shape {array.shape}, dtype {array.dtype}"
        )
    return np.ascontiguousarray(array)

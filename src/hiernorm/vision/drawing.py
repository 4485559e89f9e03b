"""Drawing of matches: two photos side by side, inliers joined by lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import replacing
from hiernorm.array_types import BoolArray, Float64Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.photos import decode

LEAST_HEIGHT = 720
"""Height in pixels to which smaller photos are enlarged."""
MOST_WIDTH = 3840
"""Width in pixels of both photos together, to which larger ones are reduced."""
HEAD, GAP = 40, 8
"""Height of the title and width of the gap, at the least height; they grow with the photos."""
OPACITY = 0.7
"""Opacity of the lines: the photo shows through."""
LINES = 300
"""Maximum number of lines, spread evenly over the matches: more would hide the photos."""
GREY = (110, 110, 110)


def read_colour(file: Path | str) -> UInt8Array:
    """A photo as (height, width, 3) uint8, blue first as OpenCV has it."""
    return decode(file, "IMREAD_COLOR")


def draw_matches(
    photos: tuple[UInt8Array, UInt8Array],
    points: tuple[Float64Array, Float64Array],
    inliers: BoolArray,
    title: str,
) -> UInt8Array:
    """Draw two photos side by side: the inliers as coloured lines, the other matches as grey dots.

    Both photos get the height of the higher one. They keep their full size unless that is too large
    for a screen, or too small.

    Parameters
    ----------
    photos
        (height, width, 3) uint8 each.
    points
        ``(n, 2)`` points of the matches in both, in pixels of the full photos.
    inliers
        ``(n,)``.
    title
        Written above.

    Returns
    -------
    (height, width, 3) uint8
    """
    cv2 = import_extra("cv2", "vision")
    height = _choose_height(photos)
    scale = height / LEAST_HEIGHT
    head, gap, stroke = round(HEAD * scale), round(GAP * scale), max(1, round(scale))
    factors = [height / photo.shape[0] for photo in photos]
    sized = [
        cv2.resize(
            photo,
            (max(1, round(photo.shape[1] * factor)), height),
            interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR,
        )
        for photo, factor in zip(photos, factors, strict=True)
    ]
    left = sized[0].shape[1] + gap
    canvas = np.full((height + head, left + sized[1].shape[1], 3), 255, np.uint8)
    canvas[head:, : sized[0].shape[1]] = sized[0]
    canvas[head:, left:] = sized[1]
    first = (points[0] + 0.5) * factors[0] + (0, head)
    second = (points[1] + 0.5) * factors[1] + (left, head)
    for outlier in np.flatnonzero(~inliers):
        for x, y in (first[outlier], second[outlier]):
            cv2.circle(canvas, (round(x), round(y)), stroke, GREY, -1, cv2.LINE_AA)
    chosen = np.flatnonzero(inliers)
    if len(chosen) > LINES:
        chosen = chosen[np.linspace(0, len(chosen) - 1, LINES).astype(np.int64)]
    lines = canvas.copy()
    for number in chosen:
        colour = _colour(cv2, float(first[number, 1] - head) / height)
        ends = [tuple(int(v) for v in end.round()) for end in (first[number], second[number])]
        cv2.line(lines, *ends, colour, stroke, cv2.LINE_AA)
        for end in ends:
            cv2.circle(lines, end, 3 * stroke, colour, stroke, cv2.LINE_AA)
    picture: UInt8Array = cv2.addWeighted(lines, OPACITY, canvas, 1 - OPACITY, 0)
    _write_title(cv2, picture, title, scale)
    return picture


def _choose_height(photos: tuple[UInt8Array, UInt8Array]) -> int:
    """The height of both photos: that of the higher, unless both together are then too wide."""
    highest = max(LEAST_HEIGHT, *(int(photo.shape[0]) for photo in photos))
    width: float = sum(photo.shape[1] / photo.shape[0] for photo in photos)  # at height 1
    return max(1, min(highest, int(MOST_WIDTH / width)))


def _write_title(cv2: Any, picture: UInt8Array, title: str, scale: float) -> None:
    """Write a line above the photos, smaller if it is too long for them."""
    font, stroke = cv2.FONT_HERSHEY_SIMPLEX, max(1, round(scale))
    width = cv2.getTextSize(title, font, 0.7 * scale, stroke)[0][0]
    size = 0.7 * scale * min(1.0, (picture.shape[1] - 24 * scale) / max(width, 1))
    place = (round(12 * scale), round(27 * scale))
    cv2.putText(picture, title, place, font, size, (30, 30, 30), stroke, cv2.LINE_AA)


def write_picture(file: Path | str, picture: UInt8Array) -> None:
    """Write a picture in the format of the file's suffix, as a whole or not at all.

    Raises ValueError if OpenCV cannot write the format.
    """
    cv2 = import_extra("cv2", "vision")
    path = Path(file)
    try:
        done, content = cv2.imencode(path.suffix.lower() or ".", picture)
    except cv2.error:
        done = False
    if not done:
        raise ValueError(f"{path}: pictures are written as .png or .jpg")
    with replacing(path, durable=False) as fresh:
        fresh.write_bytes(content.tobytes())


def _colour(cv2: Any, share: float) -> tuple[int, ...]:
    """A colour for a height; neighbouring lines have similar colours."""
    hue = np.array([[[int(np.clip(share, 0, 1) * 150), 255, 235]]], np.uint8)
    return tuple(int(v) for v in cv2.cvtColor(hue, cv2.COLOR_HSV2BGR)[0, 0])

"""Drawing of matches: two photos side by side, inliers joined by lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import replacing
from hiernorm._regular_files import read_regular
from hiernorm.array_types import BoolArray, Float64Array, UInt8Array
from hiernorm.extras import import_extra

HEIGHT = 720
"""Height of the photos in pixels."""
GAP = 8
LINES = 300
"""Maximum number of lines, spread evenly over the matches: more would hide the photos."""
GREY = (110, 110, 110)


def read_colour(file: Path | str) -> UInt8Array:
    """A photo as (height, width, 3) uint8, blue first as OpenCV has it."""
    cv2 = import_extra("cv2", "vision")
    content = np.frombuffer(read_regular(Path(file)), np.uint8)
    image = cv2.imdecode(content, cv2.IMREAD_COLOR) if len(content) else None
    if image is None:
        raise ValueError(f"{file} is not a picture that OpenCV can read, or it is damaged")
    colour: UInt8Array = image
    return colour


def draw_matches(
    photos: tuple[UInt8Array, UInt8Array],
    points: tuple[Float64Array, Float64Array],
    inliers: BoolArray,
    title: str,
) -> UInt8Array:
    """Draw two photos side by side: the inliers as coloured lines, the other matches as grey dots.

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
    factors = [HEIGHT / photo.shape[0] for photo in photos]
    small = [
        cv2.resize(
            photo,
            (max(1, round(photo.shape[1] * factor)), HEIGHT),
            interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR,
        )
        for photo, factor in zip(photos, factors, strict=True)
    ]
    head, left = 40, small[0].shape[1] + GAP
    canvas = np.full((HEIGHT + head, left + small[1].shape[1], 3), 255, np.uint8)
    canvas[head:, : small[0].shape[1]] = small[0]
    canvas[head:, left:] = small[1]
    cv2.putText(
        canvas, title, (12, 27), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (30, 30, 30), 1, cv2.LINE_AA
    )
    first = (points[0] + 0.5) * factors[0] + (0, head)
    second = (points[1] + 0.5) * factors[1] + (left, head)
    for outlier in np.flatnonzero(~inliers):
        for x, y in (first[outlier], second[outlier]):
            cv2.circle(canvas, (round(x), round(y)), 1, GREY, -1, cv2.LINE_AA)
    chosen = np.flatnonzero(inliers)
    if len(chosen) > LINES:
        chosen = chosen[np.linspace(0, len(chosen) - 1, LINES).astype(np.int64)]
    for number in chosen:
        colour = _colour(cv2, float(first[number, 1] - head) / HEIGHT)
        ends = [tuple(int(v) for v in end.round()) for end in (first[number], second[number])]
        cv2.line(canvas, *ends, colour, 1, cv2.LINE_AA)
        for end in ends:
            cv2.circle(canvas, end, 3, colour, 1, cv2.LINE_AA)
    return canvas


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

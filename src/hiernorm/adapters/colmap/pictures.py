"""A picture of what stored matches miss and add (extra ``vision``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hiernorm.adapters.colmap.comparison import Comparison, PairComparison
from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.array_types import Float64Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.drawing import read_colour, write_picture

HEIGHT = 640
"""Height of the photos in pixels."""
GAP = 8
HEAD = 64
LINES = 400
"""Maximum number of matches of each kind that are drawn, spread evenly."""
COLOURS = {"both": (150, 150, 150), "missed": (40, 160, 40), "added": (40, 40, 220)}
"""Blue, green, red."""


def write_comparison(
    path: Path | str, database: Path | str, found: Comparison, photos: Path | str | None = None
) -> None:
    """Write the picture of the pair that misses the most matches; the first one of several.

    Parameters
    ----------
    path
        A ``.png`` or ``.jpg`` file.
    database
        Where the keypoints are.
    found
        Of :func:`hiernorm.adapters.colmap.compare_matches`.
    photos
        Folder of the photos; None to draw keypoints on white.
    """
    pair = max(found.pairs, key=lambda one: len(one.missed))
    with ColmapDatabase(database) as opened:
        points = [opened.keypoints(image)[:, :2].astype(np.float64) for image in pair.pair]
    pictures = [
        _blank(at) if photos is None else _read_photo(Path(photos), name)
        for at, name in zip(points, pair.names, strict=True)
    ]
    write_picture(path, draw_comparison(pair, pictures, points))


def draw_comparison(
    pair: PairComparison, pictures: list[UInt8Array], points: list[Float64Array]
) -> UInt8Array:
    """Draw two pictures side by side, (height, width, 3) uint8.

    Matches that both have are grey dots, missed ones green lines, added ones red lines.

    Parameters
    ----------
    pair
        The matches.
    pictures
        (height, width, 3) uint8 each.
    points
        Keypoints ``(n, 2)`` of both, in pixels as COLMAP counts them.
    """
    cv2 = import_extra("cv2", "vision")
    factors = [HEIGHT / picture.shape[0] for picture in pictures]
    small = [
        cv2.resize(p, (max(1, round(p.shape[1] * f)), HEIGHT), interpolation=cv2.INTER_AREA)
        for p, f in zip(pictures, factors, strict=True)
    ]
    left = small[0].shape[1] + GAP
    canvas = np.full((HEIGHT + HEAD, left + small[1].shape[1], 3), 255, np.uint8)
    canvas[HEAD:, : small[0].shape[1]] = small[0]
    canvas[HEAD:, left:] = small[1]
    offsets = np.array([[0, HEAD], [left, HEAD]])
    for kind, colour in COLOURS.items():
        matches = getattr(pair, kind)
        if len(matches) > LINES:
            matches = matches[np.linspace(0, len(matches) - 1, LINES).astype(np.int64)]
        for match in matches:
            ends = [
                tuple(int(v) for v in np.rint(at[row] * factor + offset))
                for at, row, factor, offset in zip(points, match, factors, offsets, strict=True)
            ]
            if kind == "both":  # lines of all would hide the photos
                for end in ends:
                    cv2.circle(canvas, end, 2, colour, -1, cv2.LINE_AA)
            else:
                cv2.line(canvas, *ends, colour, 1, cv2.LINE_AA)
    words = [
        (f"{' and '.join(pair.names)}: {pair.exact} exact matches", (12, 24), (30, 30, 30)),
        (f"{len(pair.both)} found by both", (12, 50), (120, 120, 120)),
        (f"{len(pair.missed)} missed", (232, 50), COLOURS["missed"]),
        (f"{len(pair.added)} added", (392, 50), COLOURS["added"]),
    ]
    for text, place, colour in words:
        cv2.putText(canvas, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, 1, cv2.LINE_AA)
    return canvas


def _read_photo(photos: Path, name: str) -> UInt8Array:
    try:
        return read_colour(photos / name)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{photos} has no photo {name}: expected the folder of the photos of this database"
        ) from None


def _blank(points: Float64Array) -> UInt8Array:
    """A white picture with a dot at each keypoint."""
    cv2 = import_extra("cv2", "vision")
    width, height = np.ceil(points.max(axis=0, initial=1.0)).astype(int) + 8
    picture = np.full((int(height), int(width), 3), 255, np.uint8)
    for x, y in points:
        cv2.circle(picture, (round(float(x)), round(float(y))), 2, (225, 225, 225), -1)
    return picture

"""Photos of a generated room, for examples and tests of reconstruction."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hiernorm.array_types import Float64Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.drawing import write_picture

WIDTH, HEIGHT = 640, 480
FOCAL = 1.2 * WIDTH
"""What COLMAP assumes of photos without EXIF data."""
TEXTURE = 512
WALLS = (
    ((0, 0, 0), (1, 0, 0), (0, 1, 0)),
    ((0, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)),
)
"""A corner of the room and two edges of each wall; the third one is the floor. y points down."""


def write_room_photos(folder: Path | str, count: int = 8, seed: int = 0) -> list[Path]:
    """Write photos of a corner of a room with painted walls, taken along an arc.

    Parameters
    ----------
    folder
        Made if it is missing.
    count
        Number of photos.
    seed
        Of the paintings.

    Returns
    -------
    The files, ``00.png`` and on.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    paintings = [_paint(np.random.default_rng((seed, wall))) for wall in range(len(WALLS))]
    Path(folder).mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(count):
        share = number / max(1, count - 1)
        angle = np.deg2rad(20 + 50 * share)
        centre = np.array(
            [0.3 + 2.1 * np.sin(angle), 0.35 + 0.1 * np.sin(9 * share), 0.3 + 2.1 * np.cos(angle)]
        )
        files.append(Path(folder) / f"{number:02}.png")
        write_picture(files[-1], _render(paintings, centre))
    return files


def _paint(rng: np.random.Generator) -> UInt8Array:
    """A painting of coloured blots of many sizes, (TEXTURE, TEXTURE, 3)."""
    cv2 = import_extra("cv2", "vision")
    canvas = np.full((TEXTURE, TEXTURE, 3), rng.integers(90, 170, 3), np.uint8)
    for radius in np.geomspace(60, 3, 700):
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        place = tuple(int(v) for v in rng.integers(0, TEXTURE, 2))
        axes = tuple(max(2, int(radius * v)) for v in rng.uniform(0.4, 1, 2))
        cv2.ellipse(canvas, place, axes, float(rng.uniform(0, 180)), 0, 360, colour, -1)
    return canvas


def _render(paintings: list[UInt8Array], centre: Float64Array) -> UInt8Array:
    """The view from ``centre`` towards the corner."""
    cv2 = import_extra("cv2", "vision")
    forward = np.array([0.35, 0.6, 0.35]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right)
    rotation = np.stack((right, np.cross(forward, right), forward))
    intrinsics = np.array([[FOCAL, 0, WIDTH / 2 - 0.5], [0, FOCAL, HEIGHT / 2 - 0.5], [0, 0, 1.0]])
    photo = np.full((HEIGHT, WIDTH, 3), 235, np.uint8)
    for painting, (corner, along, down) in zip(paintings, WALLS, strict=True):
        plane = np.column_stack((along, down, np.subtract(corner, centre))).astype(np.float64)
        to_photo = intrinsics @ rotation @ plane @ np.diag([1 / TEXTURE, 1 / TEXTURE, 1.0])
        options = {"dsize": (WIDTH, HEIGHT), "flags": cv2.INTER_LINEAR}
        warped = cv2.warpPerspective(painting, to_photo, **options)
        covered = cv2.warpPerspective(
            np.full((TEXTURE, TEXTURE), 255, np.uint8), to_photo, **options
        )
        photo[covered > 127] = warped[covered > 127]
    return photo

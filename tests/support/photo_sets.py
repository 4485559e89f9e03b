"""Photos for the tests: crops of those inside scikit-image, and second views of them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.vision.features import FeatureSettings

RECIPE = FeatureSettings(limit=150)
NAMES = ("astronaut", "chelsea", "coffee")
TURN = np.array([[0.88, 0.3, 10.0], [-0.28, 0.9, 60.0], [1e-4, -5e-5, 1.0]])
"""The homography from a photo to its second view."""


def read_photo(name: str):
    """A photo of scikit-image, 320 x 300 pixels of its middle."""
    file = next(path for path in embedded_photos() if path.stem == name)
    image = cv2.imread(str(file))
    top, left = (image.shape[0] - 300) // 2, (image.shape[1] - 320) // 2
    return image[top : top + 300, left : left + 320]


def write_photos(folder: Path) -> list[Path]:
    """Write the three photos; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png" for name in NAMES]
    for name, file in zip(NAMES, files, strict=True):
        cv2.imwrite(str(file), read_photo(name))
    return files


def write_view(file: Path, name: str) -> Path:
    """Write a second view of a photo, seen from another side and darker."""
    view = cv2.warpPerspective(read_photo(name), TURN, (340, 320))
    cv2.imwrite(str(file), (view * 0.8).astype(np.uint8))
    return file

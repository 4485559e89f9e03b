"""The photographs that ship inside scikit-image: data for the demo and the tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAMES = (
    "astronaut.png",
    "brick.png",
    "camera.png",
    "chelsea.png",
    "coffee.png",
    "coins.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "moon.png",
    "motorcycle_left.png",
    "rocket.jpg",
)
"""Photographs with enough detail; of the stereo pair one side only, since it shows one scene."""


def embedded_photos() -> list[Path]:
    """The files of the embedded photographs, without a download.

    Raises ImportError without scikit-image, FileNotFoundError if it came without its photographs.
    """
    # Its files are all that is needed; importing scikit-image would take a second.
    package = find_spec("skimage")
    if package is None or not package.submodule_search_locations:
        raise ImportError(
            "the embedded photographs need the package scikit-image: pip install 'hiernorm[data]' "
            "(or name a folder of photos)"
        )
    folder = Path(package.submodule_search_locations[0]) / "data"
    photos = [folder / name for name in NAMES]
    missing = [photo.name for photo in photos if not photo.is_file()]
    if missing:
        raise FileNotFoundError(
            f"scikit-image in {folder.parent} came without {', '.join(missing)}: "
            "reinstall it from its wheel, or name a folder of photos"
        )
    return photos

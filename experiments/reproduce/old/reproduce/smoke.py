"""Scenes for a smoke run, made from the photographs that ship with scikit-image."""

from __future__ import annotations

import shutil
from pathlib import Path

from hiernorm.scenes.embedded import embedded_photos
from hiernorm.scenes.maker import Recipe, make_scene

SCENES = ("one", "two", "three")
"""Names: one to train on, two to test on."""

RECIPE = Recipe(points=30, views=4, pairs=400)


def make_scenes(root: Path) -> None:
    """Make the scenes and their photos below ``root``, unless they are there.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> make_scenes(root)
    >>> sorted(file.name for file in root.iterdir())
    ['one.zip', 'photos', 'three.zip', 'two.zip']
    """
    photos = embedded_photos()
    for number, scene in enumerate(SCENES):
        chosen = photos[number :: len(SCENES)]
        folder = root / "photos" / scene
        folder.mkdir(parents=True, exist_ok=True)
        for photo in chosen:
            shutil.copyfile(photo, folder / photo.name)
        if not (root / f"{scene}.zip").exists():
            make_scene(chosen, root / f"{scene}.zip", RECIPE)

"""Patches of scenes, of keypoints of photos, and turns of both; and the cache of their features."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hiernorm._files import write_atomically
from hiernorm.array_types import UInt8Array
from hiernorm.learn.batches import augment_all
from hiernorm.learn.checkpoint import load_network, save_weights
from hiernorm.learn.describers import Describer, load_describer
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.settings import Settings
from hiernorm.reference import Float32Array
from hiernorm.vision.keypoints import detect
from hiernorm.vision.patches import WINDOW, cut_patches
from hiernorm.vision.photos import list_photos, read_grey

SCALES = (WINDOW, 1.5 * WINDOW, WINDOW / 1.5)
"""Widths of a patch in sigmas of its keypoint: the scenes' own, then a coarser and a finer one."""

SYMMETRIES = range(1, 8)
"""Of the square, without the identity: quarter turns, and the same of the mirrored patch."""

SPARE = 1.1
"""Photos are asked for so many times the patches that are needed, as some have fewer keypoints."""

AS_TURNED = Settings(data=("",), augment=("turns", "flips"))


@dataclass(frozen=True)
class Source:
    """Patches that belong together, cut when they are asked for.

    Attributes
    ----------
    name
        Tells all that the patches depend on; also the name of their file in the cache.
    scene
        The scene or folder of photos that they come from.
    kind
        ``"scene"``, ``"keypoints"``, ``"other scales"`` or ``"turned"``.
    cut
        Yields them, uint8 ``(n, 64, 64)``.
    """

    name: str
    scene: str
    kind: str
    cut: Callable[[], UInt8Array]


def find_photos(data: Path, scene: str) -> list[Path]:
    """The photos of a scene, or none: official scenes come without."""
    folder = data / "photos" / scene
    return list_photos(folder) if folder.is_dir() else []


def scene_source(scene: PhotoTour) -> Source:
    """All patches of a scene."""
    return Source(f"scene-{scene.scene}", scene.scene, "scene", lambda: scene.patches)


def photo_source(photo: Path, scene: str, limit: int, window: float = WINDOW) -> Source:
    """A patch at every keypoint of a photo, the strongest ``limit`` of them at most."""

    def cut() -> UInt8Array:
        image = read_grey(photo)
        return cut_patches(image, detect(image, limit=limit), window=window)

    kind = "keypoints" if window == WINDOW else "other scales"
    return Source(f"photo-{scene}-{photo.stem}-{limit}-{window:g}", scene, kind, cut)


def spread_source(photo: Path, scene: str, count: int) -> Source:
    """Patches at ``count`` keypoints of a photo, from the strongest to the weakest alike."""

    def cut() -> UInt8Array:
        image = read_grey(photo)
        frames = detect(image)
        rows = np.linspace(0, len(frames) - 1, min(count, len(frames))).astype(np.int64)
        return cut_patches(image, frames[rows])

    return Source(f"spread-{scene}-{photo.stem}-{count}", scene, "keypoints", cut)


def turned_source(source: Source, number: int) -> Source:
    """The patches of a source under a symmetry of the square."""

    def cut() -> UInt8Array:
        rng = np.random.default_rng(0)  # for shifts, which are not asked for
        return augment_all(source.cut(), AS_TURNED, number, rng)

    return Source(f"{source.name}-turn{number}", source.scene, "turned", cut)


def photo_sources(
    photos: Sequence[tuple[str, Path]], others: Sequence[tuple[str, Path]], entries: int
) -> list[Source]:
    """Sources of photos in the order in which a database takes them.

    Every keypoint of the scene's own photos, of the others, then the same at further scales. Each
    photo gives its share of ``entries``, so that no scene is made from a few photos alone.

    Parameters
    ----------
    photos, others
        Scene and file: of the scene under test, and of all others.
    entries
        Of the largest database.
    """
    every = [*photos, *others]
    if not every:
        return []
    limit = int(np.ceil(SPARE * entries / len(every)))
    return [photo_source(file, scene, limit, scale) for scale in SCALES for scene, file in every]


class Backbone:
    """A network up to its normalisation; the features that it computes are kept on disk.

    Parameters
    ----------
    weights
        A ``.safetensors`` file.
    cache
        Folder for features, one file per source: an interrupted run computes none twice.
    threads
        Of the network.
    """

    def __init__(self, weights: Path, cache: Path, threads: int) -> None:
        self.weights = weights
        self._threads = threads
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:12]
        self._folder = cache / "features" / digest

    @cached_property
    def _describer(self) -> Describer:
        return load_describer(str(self.weights), threads=self._threads)

    def features(self, source: Source) -> Float32Array:
        """Features before normalisation of a source's patches, float32 ``(n, 128)``, mapped."""
        file = self._folder / f"{source.name}.npy"
        if not file.exists():
            rows = self._describer(source.cut()).features
            assert rows is not None
            buffer = io.BytesIO()
            np.save(buffer, rows)
            write_atomically(file, buffer.getvalue())
        mapped: Float32Array = np.load(file, mmap_mode="r", allow_pickle=False)
        return mapped


def shipped_backbone(cache: Path, threads: int, model: str = "hardnet") -> Backbone:
    """The backbone of a model that ships with the package; its weights are put into the cache."""
    weights = cache / f"{model}.safetensors"
    save_weights(weights, load_network(model))
    return Backbone(weights, cache, threads)

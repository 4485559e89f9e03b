"""Features of photos in databases of COLMAP: SIFT by COLMAP, other descriptors at its keypoints."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import replacing
from hiernorm.adapters.colmap import ColmapDatabase
from hiernorm.adapters.colmap.mapping import import_pycolmap, quiet_colmap
from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.models import Model, load_model
from hiernorm.vision.frames import Frames
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.reconstruct import read_as_stored


def extract_sift(photos: Path, names: list[str], database: Path, limit: int, side: int) -> None:
    """Extract SIFT features by COLMAP, at most ``limit`` a photo of at most ``side`` pixels.

    COLMAP counts a keypoint once for all of its orientations and keeps whole levels of scale, so it
    gives more than ``limit``. Those of the largest scales are kept.
    """
    pycolmap = import_pycolmap()
    options = pycolmap.FeatureExtractionOptions()
    options.max_image_size = side
    options.sift.max_num_features = limit
    with replacing(database, durable=False) as fresh:
        with quiet_colmap(pycolmap):
            pycolmap.extract_features(
                str(fresh), str(photos), image_names=names, extraction_options=options
            )
        _keep_largest(fresh, limit)


def copy_largest(source: Path, database: Path, limit: int) -> None:
    """Copy a database with at most ``limit`` features a photo, those of the largest scales."""
    with replacing(database, durable=False) as fresh:
        shutil.copy(source, fresh)
        _keep_largest(fresh, limit)


def _keep_largest(database: Path, limit: int) -> None:
    """Drop all but ``limit`` features of each photo; the others stay in their order."""
    pycolmap = import_pycolmap()
    with pycolmap.Database.open(str(database)) as opened:
        kept = {}
        for image in opened.read_all_images():
            keypoints = opened.read_keypoints(image.image_id)
            rows = opened.read_descriptors(image.image_id)
            largest = np.sort(np.argsort(-frames_of(keypoints).sigma, kind="stable")[:limit])
            rows.data = np.ascontiguousarray(rows.data[largest])
            kept[image.image_id] = keypoints[largest], rows
        opened.clear_keypoints()
        opened.clear_descriptors()
        for image_id, (keypoints, rows) in kept.items():
            opened.write_keypoints(image_id, keypoints)
            opened.write_descriptors(image_id, rows)


def describe_again(photos: Path, source: Path, database: Path, model: str) -> None:
    """Copy a database and describe its keypoints by a shipped model instead of SIFT."""
    pycolmap = import_pycolmap()
    network = load_model(model)
    with replacing(database, durable=False) as fresh:
        shutil.copy(source, fresh)
        _describe_all(pycolmap, photos, fresh, network)


def _describe_all(pycolmap: Any, photos: Path, database: Path, network: Model) -> None:
    with pycolmap.Database.open(str(database)) as opened:
        described = []
        for image in opened.read_all_images():
            frames = frames_of(opened.read_keypoints(image.image_id))
            rows = network.describe(cut_patches(read_as_stored(photos / image.name), frames))
            stored = pycolmap.FeatureDescriptors()
            stored.type = pycolmap.FeatureExtractorType.UNDEFINED
            stored.data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
            described.append((image.image_id, stored))
        opened.clear_descriptors()
        for image_id, stored in described:
            opened.write_descriptors(image_id, stored)


def frames_of(keypoints: Float32Array) -> Frames:
    """Frames of COLMAP's keypoints, ``(n, 4)`` with scale and angle or ``(n, 6)`` affine."""
    rows = keypoints.astype(np.float64)
    if rows.shape[1] == 4:
        scale, angle = rows[:, 2], rows[:, 3]
    else:
        a11, a12, a21, a22 = rows[:, 2:].T
        scale = (np.hypot(a11, a21) + np.hypot(a12, a22)) / 2
        angle = np.arctan2(a21, a11)
    return Frames(rows[:, 0] - 0.5, rows[:, 1] - 0.5, scale, angle)


def pooled_descriptors(database: Path, count: int) -> tuple[UInt8Array, UInt8Array]:
    """Two sets of ``count`` byte descriptors, from the even and the odd photos of a database."""
    with ColmapDatabase(database) as opened:
        rows = [opened.descriptors(image.image_id) for image in opened.images()]
    pooled: list[UInt8Array] = []
    for part in (rows[::2], rows[1::2]):
        joined: UInt8Array = np.concatenate(part).astype(np.uint8)
        repeats = -(-count // len(joined))
        # Repetitions with noise, where the photos have too few: equal vectors would be ties.
        rng = np.random.default_rng(len(pooled))
        copies = [joined] + [
            np.clip(joined + rng.integers(-6, 7, joined.shape), 0, 255).astype(np.uint8)
            for _ in range(repeats - 1)
        ]
        pooled.append(np.concatenate(copies)[:count])
    return pooled[0], pooled[1]


def write_pair(path: Path, a: UInt8Array, b: UInt8Array) -> None:
    """Write a database of two images with byte descriptors; their keypoints are all the same."""
    pycolmap = import_pycolmap()
    with replacing(path, durable=False) as fresh, pycolmap.Database.open(str(fresh)) as opened:
        camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=100, height=100, params=[90, 50, 50])
        camera_id = opened.write_camera(camera)
        for number, rows in enumerate((a, b)):
            image_id = opened.write_image(pycolmap.Image(name=f"{number}.png", camera_id=camera_id))
            opened.write_keypoints(image_id, np.zeros((len(rows), 2), np.float32))
            stored = pycolmap.FeatureDescriptors()
            stored.type = pycolmap.FeatureExtractorType.SIFT
            stored.data = rows
            opened.write_descriptors(image_id, stored)

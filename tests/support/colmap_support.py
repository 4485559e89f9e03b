"""Databases of COLMAP with features of embedded photos."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np

from photo_sets import TURN, read_photo


def sift_bytes(image, limit: int = 300):
    """Keypoints (n, 4) float32 and descriptors (n, 128) uint8, scaled as COLMAP scales SIFT."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    found, rows = cv2.SIFT_create(nfeatures=limit).detectAndCompute(grey, None)
    keypoints = np.float32([(*p.pt, p.size / 2, np.deg2rad(p.angle)) for p in found])
    roots = np.sqrt(rows / rows.sum(axis=1, keepdims=True))
    return keypoints[:limit], np.minimum(np.rint(512 * roots), 255).astype(np.uint8)[:limit]


def photo_views(count: int = 3):
    """Views of an embedded photo, from sides that differ more and more."""
    photo = read_photo("astronaut")
    views = [photo]
    for number in range(1, count):
        share = number / max(1, count - 1)
        turn = (1 - share) * np.eye(3) + share * TURN
        views.append(cv2.warpPerspective(photo, turn, (340, 320)))
    return views


def write_database(path: Path, features, kind: int = 0, name: str = "{:02}.png") -> Path:
    """Write (keypoints, descriptors) of images 00.png, 01.png, ... by pycolmap itself."""
    import pycolmap

    with pycolmap.Database.open(str(path)) as database:
        camera = pycolmap.Camera(
            model="SIMPLE_RADIAL", width=340, height=320, params=[400, 170, 160, 0]
        )
        camera_id = database.write_camera(camera)
        for number, (keypoints, rows) in enumerate(features):
            image = database.write_image(
                pycolmap.Image(name=name.format(number), camera_id=camera_id)
            )
            database.write_keypoints(image, keypoints)
            stored = pycolmap.FeatureDescriptors()
            stored.type = pycolmap.FeatureExtractorType(kind)
            stored.data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
            database.write_descriptors(image, stored)
    return path


def colmap_brute_force(a, b, **changes):
    """COLMAP's own brute-force matches (m, 2) of byte descriptors."""
    import pycolmap

    options = pycolmap.FeatureMatchingOptions()
    options.sift.cpu_brute_force_matcher = True
    for name, value in changes.items():
        setattr(options.sift, name, value)
    stored = []
    for rows in (a, b):
        stored.append(pycolmap.FeatureDescriptors())
        stored[-1].type = pycolmap.FeatureExtractorType.SIFT
        stored[-1].data = rows
    matcher = pycolmap.FeatureMatcher.create(options)
    return matcher.match(None, stored[0], None, stored[1]).astype(np.int64)


def stored_matches(path):
    """All rows of the table `matches`, in the order of pairs."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM matches ORDER BY pair_id").fetchall()

"""Collections of photos that tests explore."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from hiernorm.vision.collection import Collection
from hiernorm.vision.ingest import find_photos, ingest_photos
from photo_sets import RECIPE, read_photo, write_photos, write_view


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three photos and a second view of one, described."""
    folder = tmp_path_factory.mktemp("explore")
    write_photos(folder / "photos")
    write_view(folder / "photos" / "view.png", "chelsea")
    ingest_photos(folder / "all.hn", find_photos([folder / "photos"]), RECIPE)
    return folder


@pytest.fixture(scope="module")
def collection(folder) -> Collection:
    return Collection.open(folder / "all.hn")


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory) -> Path:
    """A photo as a camera takes it, 4,000 x 3,000, described."""
    folder = tmp_path_factory.mktemp("large")
    photo = cv2.resize(read_photo("coffee"), (4000, 3000), interpolation=cv2.INTER_CUBIC)
    cv2.imwrite(str(folder / "large.jpg"), photo)
    ingest_photos(folder / "all.hn", [folder / "large.jpg"], RECIPE)
    return folder


def expected_neighbours(collection: Collection, key: int, k: int) -> list[int]:
    """By brute force, the keypoint's own photo left out."""
    own = collection.photos_of(np.array([key]))[0]
    ids = np.sort(collection.ids[collection.photos_of(collection.ids) != own])
    row = collection.database.reconstruct([key])[0].astype(np.float64)
    scores = collection.database.reconstruct(ids).astype(np.float64) @ row
    return ids[np.argsort(-scores, kind="stable")[:k]].tolist()

"""Databases of COLMAP that several files of tests change."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """A database of four photos with SIFT features, not to be changed."""
    from colmap_support import photo_views, sift_bytes, write_database  # needs OpenCV

    features = [sift_bytes(view, 120) for view in photo_views(4)]
    return write_database(tmp_path_factory.mktemp("original") / "database.db", features)


@pytest.fixture
def database(original, tmp_path):
    """A copy of it."""
    return shutil.copy(original, tmp_path / "database.db")

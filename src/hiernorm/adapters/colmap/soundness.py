"""Checks before COLMAP reads a database: what is wrong with one ends COLMAP's whole process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from hiernorm.adapters.colmap.connection import COLUMNS
from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.adapters.colmap.records import Pair
from hiernorm.storage.errors import DamagedError, NotADatabaseError

TABLES = {*COLUMNS, "cameras", "rigs", "rig_sensors", "frames", "frame_data", "pose_priors"}
"""Tables of COLMAP."""


def require_colmap_file(path: Path) -> None:
    """Raise unless a file is a database of COLMAP, or one that COLMAP has begun to make.

    COLMAP opens every SQLite file and adds its tables to it.

    Parameters
    ----------
    path
        The file; it may be missing.
    """
    if not path.exists():
        return
    try:
        ColmapDatabase(path).close()
    except NotADatabaseError:
        if not _has_only(path, TABLES):
            raise


def _has_only(path: Path, tables: set[str]) -> bool:
    """Whether a file is an SQLite file without any table but these."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            found = opened.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
    except sqlite3.DatabaseError:
        return False
    return {name for (name,) in found} <= tables


def require_sound_matches(database: ColmapDatabase, pairs: Iterable[Pair]) -> None:
    """Raise DamagedError unless the matches of pairs name keypoints that their images have.

    Parameters
    ----------
    database
        An open database.
    pairs
        Ids of images; pairs without matches are left out.
    """
    counts: dict[int, int] = {}
    for pair in pairs:
        matches = database.matches(pair)
        if matches is None or len(matches) == 0:
            continue
        if matches.shape[1] != 2:
            raise DamagedError(
                f"{database.path}: matches of pair {pair} have {matches.shape[1]} columns, "
                "expected 2"
            )
        for image_id, named in zip(pair, matches.max(axis=0).tolist(), strict=True):
            if image_id not in counts:
                counts[image_id] = len(database.keypoints(image_id))
            if named >= counts[image_id]:
                name = database.name(image_id)
                raise DamagedError(
                    f"{database.path}: matches of pair {pair} name keypoint {named} of image "
                    f"{name!r}, which has {counts[image_id]} keypoints: extract its features "
                    "again, and match it again"
                )

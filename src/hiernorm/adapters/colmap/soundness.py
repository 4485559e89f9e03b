"""Checks before COLMAP reads a database: what is wrong with one ends COLMAP's whole process."""

from __future__ import annotations

from collections.abc import Iterable

from hiernorm.adapters.colmap.database import ColmapDatabase, Pair
from hiernorm.storage.errors import DamagedError


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

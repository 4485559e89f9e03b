"""Geometric verification by COLMAP, which leaves the stored matches as they are.

``pycolmap.verify_matches`` deletes the matches of up to a block of pairs and writes them again when
they are verified: a process that is killed meanwhile loses them. It takes names from a file that
splits them at spaces, and matches pairs by itself that have no matches. So pairs are estimated here
one by one, by the function that ``verify_matches`` calls, with its options and its seed: the rows
that are written are the same.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.adapters.colmap.database import WAIT_SECONDS, ColmapDatabase
from hiernorm.adapters.colmap.locking import one_writer
from hiernorm.adapters.colmap.mapping import (
    SEED,
    explained_errors,
    import_pycolmap,
    quiet_colmap,
)
from hiernorm.adapters.colmap.matcher import BLOCK_IMAGES, in_blocks
from hiernorm.adapters.colmap.pair_work import COMMIT_SECONDS, in_batches, side_by_side
from hiernorm.adapters.colmap.pairing import exhaustive_pairs
from hiernorm.adapters.colmap.records import Pair, pair_id
from hiernorm.adapters.colmap.soundness import require_sound_matches
from hiernorm.adapters.disk_space import require_space
from hiernorm.array_types import Float64Array
from hiernorm.progress import ProgressCallback
from hiernorm.threads import thread_count

KEPT_IMAGES = 4 * BLOCK_IMAGES
"""Images whose keypoints are kept in memory."""
GEOMETRY_BYTES = 1024
"""Of a stored geometry at most, without its inliers."""


def verify_pairs(
    path: Path | str,
    pairs: Iterable[Pair] | None = None,
    *,
    threads: int | None = None,
    wait_seconds: float = WAIT_SECONDS,
    progress: ProgressCallback | None = None,
) -> int:
    """Verify the stored matches of pairs geometrically, as ``pycolmap.verify_matches`` does.

    The matches are only read. A call that was interrupted is continued by calling again: pairs that
    have a geometry are kept. Pairs without stored matches are left out.

    Parameters
    ----------
    path
        A database with matches.
    pairs
        Image ids; None for all pairs.
    threads
        As for :class:`hiernorm.Index`. They do not change the geometries.
    wait_seconds
        How long to wait for another process that matches, verifies or writes.
    progress
        Called with the pairs done and their number.

    Returns
    -------
    The number of these pairs that have verified matches.
    """
    pycolmap = import_pycolmap()
    workers = thread_count(threads)
    with (
        ColmapDatabase(path, writable=True, wait_seconds=wait_seconds) as database,
        one_writer(path, wait_seconds),
    ):
        wanted = exhaustive_pairs(database.images()) if pairs is None else list(pairs)
        require_sound_matches(database, wanted)
        database.require_unlocked()
        # Inliers are some of the matches: in the log first, then in the database.
        require_space(path, 2 * database.stored_bytes("matches"), "COLMAP")
        open_pairs = database.matched_pairs() - database.estimated_pairs()
        todo = in_blocks([pair for pair in dict.fromkeys(wanted) if pair_id(pair) in open_pairs])
        estimator = _Estimator(pycolmap, database)
        with (
            quiet_colmap(pycolmap),
            in_batches(estimator.write, COMMIT_SECONDS) as add,
            closing(side_by_side(estimator.estimate, todo, workers)) as found,
        ):
            for count, (pair, geometry) in enumerate(found, start=1):
                add(pair, geometry)
                if progress is not None:
                    progress(count, len(todo))
        return len(database.verified_pairs() & {pair_id(pair) for pair in wanted})


class _Estimator:
    """Geometries of pairs, and the rows of the database that hold them."""

    def __init__(self, pycolmap: Any, database: ColmapDatabase) -> None:
        self._pycolmap = pycolmap
        self._database = database
        self._options = pycolmap.TwoViewGeometryOptions()
        self._options.ransac.random_seed = SEED
        self._camera = lru_cache(KEPT_IMAGES)(self._read_camera)
        self._points = lru_cache(KEPT_IMAGES)(self._read_points)

    def estimate(self, pair: Pair) -> Any:
        """The two-view geometry of a pair; one without inliers if they are too few."""
        matches = self._database.matches(pair)
        assert matches is not None  # only pairs with matches are asked for
        first, second = pair
        geometry = self._pycolmap.estimate_two_view_geometry(
            self._camera(first),
            self._points(first),
            self._camera(second),
            self._points(second),
            matches,
            self._options,
        )
        if len(geometry.inlier_matches) >= self._options.min_num_inliers:
            return geometry
        return self._pycolmap.TwoViewGeometry(config=geometry.config)

    def write(self, found: Sequence[tuple[Pair, Any]]) -> None:
        """Write geometries in one transaction.

        A database for this purpose takes them first: COLMAP alone knows how it stores a geometry.
        It is read and written here, so that errors of the disk end no process.
        """
        needed = sum(GEOMETRY_BYTES + 16 * len(geometry.inlier_matches) for _, geometry in found)
        with tempfile.TemporaryDirectory() as folder:
            require_space(folder, needed, "COLMAP")
            file = Path(folder) / "geometries.db"
            with self._pycolmap.Database.open(str(file)) as scratch:
                for pair, geometry in found:
                    scratch.write_two_view_geometry(*pair, geometry)
            with closing(sqlite3.connect(file)) as opened:
                cursor = opened.execute("SELECT * FROM two_view_geometries")
                columns = [str(column[0]) for column in cursor.description]
                rows = cursor.fetchall()
        if not set(columns) <= self._database.columns("two_view_geometries"):
            with explained_errors(self._database.path):  # an older schema: COLMAP updates it
                self._pycolmap.Database.open(str(self._database.path)).close()
        self._database.write_geometries(columns, rows)

    def _read_camera(self, image_id: int) -> Any:
        stored = self._database.camera(image_id)
        # The id belongs to it: COLMAP takes cameras of one id for the same camera.
        return self._pycolmap.Camera(
            camera_id=stored.camera_id,
            model=self._pycolmap.CameraModelId(stored.model),
            width=stored.width,
            height=stored.height,
            params=stored.params,
            has_prior_focal_length=stored.has_prior_focal_length,
        )

    def _read_points(self, image_id: int) -> Float64Array:
        return self._database.keypoints(image_id)[:, :2].astype(np.float64)

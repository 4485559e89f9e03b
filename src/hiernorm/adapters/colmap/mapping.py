"""Geometric verification and mapping, both by COLMAP itself (extra ``colmap``)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiernorm.adapters.colmap.database import WAIT_SECONDS, ColmapDatabase, Pair, pair_id
from hiernorm.adapters.colmap.pairing import exhaustive_pairs, write_pairs
from hiernorm.adapters.colmap.soundness import require_sound_matches
from hiernorm.adapters.disk_space import require_space
from hiernorm.extras import import_extra

SEED = 0
"""Of COLMAP's random numbers, so that the same call does the same work again."""


def verify_pairs(
    path: Path | str, pairs: Iterable[Pair] | None = None, *, wait_seconds: float = WAIT_SECONDS
) -> int:
    """Verify the stored matches of pairs by ``pycolmap.verify_matches``.

    Parameters
    ----------
    path
        A database with matches.
    pairs
        Image ids; None for all pairs.
    wait_seconds
        How long to wait for another process that is writing.

    Returns
    -------
    The number of these pairs that have verified matches.
    """
    pycolmap = import_pycolmap()
    with ColmapDatabase(path, writable=True, wait_seconds=wait_seconds) as database:
        images = database.images()
        wanted = exhaustive_pairs(images) if pairs is None else list(pairs)
        matches = database.stored_bytes("matches")
        require_sound_matches(database, wanted)
        database.require_unlocked()
    # Inliers are some of the matches: in the log first, then in the database. COLMAP packs the
    # database when it closes it, through the log too.
    require_space(path, 2 * matches + Path(path).stat().st_size, "COLMAP")
    with (
        tempfile.TemporaryDirectory() as folder,
        explained_errors(path),
        quiet_colmap(pycolmap),
    ):
        file = Path(folder) / "pairs.txt"
        write_pairs(file, wanted, images)
        options = pycolmap.TwoViewGeometryOptions()
        options.ransac.random_seed = SEED
        pycolmap.verify_matches(str(path), str(file), options=options)
    with ColmapDatabase(path) as database:
        return len(database.verified_pairs() & {pair_id(pair) for pair in wanted})


def map_database(
    path: Path | str,
    photos: Path | str,
    out: Path | str,
    options: Any = None,
    *,
    threads: int | None = None,
) -> list[Any]:
    """Reconstruct the scene of a verified database by ``pycolmap.incremental_mapping``.

    Parameters
    ----------
    path
        The database.
    photos
        The folder of its images.
    out
        Folder of the models: ``0``, ``1``, ... with COLMAP's files.
    options
        ``pycolmap.IncrementalPipelineOptions``; None for COLMAP's defaults.
    threads
        Threads of COLMAP where ``options`` is None; None for all processors. With several, COLMAP
        may find a few points more or less the next time.

    Returns
    -------
    Reconstructions of pycolmap, the one with the most images first.
    """
    pycolmap = import_pycolmap()
    if options is None:
        options = pycolmap.IncrementalPipelineOptions()
        options.random_seed = SEED
        if threads is not None:
            options.num_threads = threads
    Path(out).mkdir(parents=True, exist_ok=True)
    with ColmapDatabase(path) as database:
        # Of its 24 bytes a keypoint and at most 30 an observation; a stored keypoint has 16.
        require_space(out, 4 * database.stored_bytes("keypoints"), "COLMAP")
    with explained_errors(path), quiet_colmap(pycolmap):
        models = pycolmap.incremental_mapping(str(path), str(photos), str(out), options=options)
    return sorted(models.values(), key=lambda model: -model.num_reg_images())


def import_pycolmap() -> Any:
    """The module pycolmap; if it is missing, the error names the extra."""
    return import_extra("pycolmap", extra="colmap")


@contextmanager
def explained_errors(path: Path | str) -> Iterator[None]:
    """Say what is wrong with a database that COLMAP failed on; its own errors often do not."""
    try:
        yield
    except (RuntimeError, ValueError):
        with ColmapDatabase(path, writable=True, wait_seconds=0.0) as database:
            database.require_unlocked()
        raise


@contextmanager
def quiet_colmap(pycolmap: Any) -> Iterator[None]:
    """Only errors of COLMAP are printed."""
    before = pycolmap.logging.minloglevel
    pycolmap.logging.minloglevel = int(pycolmap.logging.ERROR)
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = before

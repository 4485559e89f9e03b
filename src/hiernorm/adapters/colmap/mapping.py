"""Mapping by COLMAP itself (extra ``colmap``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.adapters.disk_space import require_space
from hiernorm.extras import import_extra

SEED = 0
"""Of COLMAP's random numbers, so that the same call does the same work again."""


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

"""A map from photos: describe, match exactly, then COLMAP verifies and maps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import write_atomically
from hiernorm._regular_files import read_regular
from hiernorm.adapters.colmap import (
    ColmapDatabase,
    map_database,
    match_database,
    retrieve_pairs,
    verify_pairs,
)
from hiernorm.adapters.colmap.database import WAIT_SECONDS
from hiernorm.adapters.colmap.importing import import_photos
from hiernorm.adapters.colmap.locking import one_writer
from hiernorm.adapters.colmap.mapping import import_pycolmap
from hiernorm.adapters.colmap.soundness import require_colmap_file
from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.models import load_model
from hiernorm.progress import BuildProgressCallback
from hiernorm.vision.drawing import write_picture
from hiernorm.vision.features import FeatureSettings, describe_grey
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import decode, is_utf8, list_photos
from hiernorm.vision.sparse_model import SparseModel, draw_model, write_model_page

EXHAUSTIVE = 60
"""Up to this many photos all pairs are matched, unless it is said how many."""
SETTINGS_BYTES = 1 << 16
RETRIEVED = 20
"""Photos that each photo is matched with, if there are more."""


@dataclass(frozen=True)
class Reconstruction:
    """What was reconstructed.

    Attributes
    ----------
    folder
        ``settings.json`` of the features, ``database.db``, COLMAP's models ``sparse/0`` and on;
        ``model.png`` and ``model.html`` show the largest one.
    photos, registered
        Number of photos, and of those that the largest model has a camera of.
    points
        Number of its 3-D points.
    track_length, reprojection_error
        Mean number of photos that see a point; mean error of its images in pixels.
    seconds
        Times of ``describe``, ``match``, ``verify`` and ``map``.
    """

    folder: Path
    photos: int
    registered: int
    points: int
    track_length: float
    reprojection_error: float
    seconds: dict[str, float] = field(default_factory=dict)


def reconstruct_photos(
    photos: Path | str,
    out: Path | str,
    *,
    settings: FeatureSettings | None = None,
    retrieve: int | None = None,
    single_camera: bool = False,
    threads: int | None = None,
    progress: BuildProgressCallback | None = None,
) -> Reconstruction:
    """Reconstruct the scene that photos show.

    A call that was interrupted is continued by calling again: photos that are described and pairs
    that are matched are kept.

    Parameters
    ----------
    photos
        Folder of the photos.
    out
        Folder of the result; made if it is missing.
    settings
        How features are extracted; None for ``hn16`` at up to 4,096 keypoints.
    retrieve
        Match each photo with this many that look alike; None to match all pairs of few photos.
    single_camera
        One camera took all photos with one lens and zoom, and they have one size: COLMAP estimates
        its focal length once, instead of once for each photo.
    threads
        As for :class:`hiernorm.Index`. With 1, COLMAP makes the same model every time.
    progress
        Called with the name of the step, what is done and how much there is.
    """
    import_pycolmap()
    folder, settings = Path(out), settings or FeatureSettings(limit=4096)
    report = progress or (lambda step, done, total: None)
    names = [path.relative_to(photos).as_posix() for path in list_photos(Path(photos))]
    if len(names) < 2:
        raise ValueError(f"a reconstruction needs two photos or more, {photos} has {names[0]} only")
    _check_names(names)
    database = folder / "database.db"
    require_colmap_file(database)
    if database.exists() and not (folder / "settings.json").exists():
        raise ValueError(
            f"{database} is there without settings.json, so this command has not made it: choose "
            "another folder, or match its features with `hiernorm colmap match`"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _check_settings(folder / "settings.json", settings)
    seconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        done = work()
        seconds[step] = time.perf_counter() - start
        return done

    def describe() -> None:
        import_photos(Path(photos), names, database, single_camera=single_camera)
        _describe(Path(photos), names, database, settings, report)

    with one_writer(database, WAIT_SECONDS):
        timed("describe", describe)
        with ColmapDatabase(database) as opened:
            many = len(names) > EXHAUSTIVE
            count = retrieve if retrieve is not None else RETRIEVED if many else None
            pairs = None if count is None else retrieve_pairs(opened, count, threads=threads)
        timed(
            "match",
            lambda: match_database(
                database,
                pairs,
                threads=threads,
                progress=lambda done, total: report("match", done, total),
            ),
        )
        timed(
            "verify",
            lambda: verify_pairs(
                database,
                pairs,
                threads=threads,
                progress=lambda done, total: report("verify", done, total),
            ),
        )
        models = timed(
            "map", lambda: map_database(database, photos, folder / "sparse", threads=threads)
        )
    if not models:
        raise ValueError(
            f"no model of {photos}: its photos share too little. Take more of them, from places "
            "near each other, or allow more keypoints"
        )
    best = models[0]
    shape = SparseModel.from_pycolmap(best)
    write_picture(folder / "model.png", draw_model(shape))
    write_model_page(folder / "model.html", shape, Path(photos).resolve().name)
    return Reconstruction(
        folder,
        len(names),
        int(best.num_reg_images()),
        int(best.num_points3D()),
        float(best.compute_mean_track_length()),
        float(best.compute_mean_reprojection_error()),
        seconds,
    )


def _check_names(names: list[str]) -> None:
    """Raise unless COLMAP can store the names."""
    for name in names:
        if not is_utf8(name):
            shown = name.encode("utf-8", "backslashreplace").decode()
            raise ValueError(f"{shown} has a name that is not UTF-8: rename it")


def _check_settings(file: Path, settings: FeatureSettings) -> None:
    """Raise if the features in the folder were extracted in another way; else note the way."""
    if not file.exists():
        write_atomically(file, json.dumps(asdict(settings)).encode())
        return
    try:
        before = FeatureSettings(**json.loads(read_regular(file, SETTINGS_BYTES)))
    except (ValueError, TypeError):
        raise ValueError(f"{file} is damaged: choose another folder") from None
    if before != settings:
        was, now = before.differences(settings)
        raise ValueError(
            f"{file.parent} has features with {was}, asked for is {now}: choose another folder"
        )


def _describe(
    photos: Path,
    names: list[str],
    database: Path,
    settings: FeatureSettings,
    report: BuildProgressCallback,
) -> None:
    """Put the features of photos into the database; those that are there are kept."""
    model = load_model(settings.model)
    with ColmapDatabase(database, writable=True) as stored:
        images = {image.name: image for image in stored.images()}
        for done, name in enumerate(names, start=1):
            if images[name].descriptors is None:
                features = describe_grey(read_as_stored(photos / name), settings, model)
                stored.write_features(
                    images[name].image_id, colmap_keypoints(features.frames), features.descriptors
                )
            report("describe", done, len(names))


def colmap_keypoints(frames: Frames) -> Float32Array:
    """Keypoints ``(n, 4)`` as COLMAP has them: the centre of the top left pixel is (0.5, 0.5)."""
    columns = (frames.x + 0.5, frames.y + 0.5, frames.sigma, frames.angle)
    return np.column_stack(columns).astype(np.float32)


def read_as_stored(file: Path) -> UInt8Array:
    """Grey values as they are stored, not turned as EXIF says: COLMAP reads them so."""
    return decode(file, "IMREAD_GRAYSCALE", "IMREAD_IGNORE_ORIENTATION")

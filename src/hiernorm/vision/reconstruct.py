"""A map from photos: describe, match exactly, then COLMAP verifies and maps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import write_atomically
from hiernorm._regular_files import read_regular
from hiernorm.adapters.colmap import (
    ColmapDatabase,
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
from hiernorm.vision.features import FeatureSettings, describe_grey
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import decode
from hiernorm.vision.reconstruct_inputs import (
    DATABASE,
    SETTINGS,
    digests_of,
    forget_changed,
    identical_photos,
    only_writer,
    photo_names,
    require_own_folder,
)
from hiernorm.vision.reconstruct_models import map_into

EXHAUSTIVE = 60
"""Up to this many photos all pairs are matched, unless it is said how many."""
SETTINGS_BYTES = 1 << 16
RETRIEVED = 20
"""Photos that each photo is matched with, if there are more."""

SHOWN = 3
"""Groups of identical photos that an error names."""


@dataclass(frozen=True)
class Reconstruction:
    """What was reconstructed.

    Attributes
    ----------
    folder
        ``settings.json`` of the features, ``photos.json`` with digests of the photos,
        ``database.db``, COLMAP's models ``sparse/0`` and on, the largest first; ``model.png`` and
        ``model.html`` show ``sparse/0``.
    photos, registered
        Number of photos, and of those that ``sparse/0`` has a camera of.
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
    that are matched are kept. Photos whose files have changed are described again, and photos that
    were removed from the folder are removed from the result.

    Parameters
    ----------
    photos
        Folder of the photos. Results of reconstructions that are in it are no photos.
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
    names = photo_names(Path(photos), folder)
    database = folder / DATABASE
    require_colmap_file(database)
    require_own_folder(folder)
    seconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        done = work()
        seconds[step] = time.perf_counter() - start
        return done

    def describe() -> None:
        import_photos(Path(photos), names, database, single_camera=single_camera)
        _describe(Path(photos), names, database, settings, report)

    with only_writer(folder), one_writer(database, WAIT_SECONDS):
        digests = digests_of(Path(photos), names)
        if len(set(digests.values())) < 2:
            raise ValueError(
                f"a reconstruction needs two different photos or more, all {len(names)} in "
                f"{photos} are identical"
            )
        _check_settings(folder / SETTINGS, settings)
        forget_changed(folder, digests)
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
                progress=partial(report, "match"),
            ),
        )
        timed(
            "verify",
            lambda: verify_pairs(
                database,
                pairs,
                threads=threads,
                progress=partial(report, "verify"),
            ),
        )
        models = timed("map", lambda: map_into(folder, database, Path(photos), threads))
        if not models:
            raise _no_model(photos, digests)
    best = models[0]
    return Reconstruction(
        folder,
        len(names),
        int(best.num_reg_images()),
        int(best.num_points3D()),
        float(best.compute_mean_track_length()),
        float(best.compute_mean_reprojection_error()),
        seconds,
    )


def _no_model(photos: Path | str, digests: dict[str, str]) -> ValueError:
    """Why there is no model, as far as it is known."""
    same = [" = ".join(group) for group in identical_photos(digests)]
    more = f" and {len(same) - SHOWN:,} more" if len(same) > SHOWN else ""
    twice = f", and some are identical ({', '.join(same[:SHOWN])}{more})" if same else ""
    return ValueError(
        f"no model of {photos}: its photos share too little{twice}. Take more of them, from places "
        "near each other, or allow more keypoints"
    )


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

"""Photos become images of a database, with one camera for all or with one for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiernorm.adapters.colmap.mapping import explained_errors, import_pycolmap, quiet_colmap
from hiernorm.adapters.disk_space import require_space


def import_photos(
    photos: Path, names: Sequence[str], database: Path, *, single_camera: bool = False
) -> None:
    """Put photos into a database, which is made if it is missing; those that are there are kept.

    Parameters
    ----------
    photos, names
        A folder, and files in it.
    database
        The file.
    single_camera
        Whether all photos share one camera, as in COLMAP's ``ImageReader.single_camera``. Else each
        has a camera of its own.
    """
    pycolmap = import_pycolmap()
    require_space(database, 0, "COLMAP")
    with explained_errors(database), quiet_colmap(pycolmap):
        with pycolmap.Database.open(str(database)) as opened:
            known = {image.name: image.camera_id for image in opened.read_all_images()}
        _check_cameras(database, list(known.values()), single_camera)
        fresh = [name for name in names if name not in known]
        if fresh:
            options = pycolmap.ImageReaderOptions()
            mode = pycolmap.CameraMode.AUTO
            if single_camera:
                mode = pycolmap.CameraMode.SINGLE
                options.existing_camera_id = next(iter(known.values()), -1)
            pycolmap.import_images(
                str(database), str(photos), camera_mode=mode, image_names=fresh, options=options
            )
        with pycolmap.Database.open(str(database)) as opened:
            _check_images(opened, photos, names, single_camera)


def _check_cameras(database: Path, cameras: list[int], single_camera: bool) -> None:
    """Raise if the images that are there have their cameras in the other way."""
    if len(cameras) < 2:
        return
    was_single = len(set(cameras)) == 1
    if was_single != single_camera:
        was, now = ("one camera", "a camera for each photo")[:: 1 if was_single else -1]
        raise ValueError(f"{database} has {was}, asked for is {now}: choose another folder")


def _check_images(opened: Any, photos: Path, names: Sequence[str], single_camera: bool) -> None:
    """Raise if COLMAP left a photo out."""
    images = {image.name: image for image in opened.read_all_images()}
    for name in names:
        if name in images:
            continue
        if single_camera and images:
            first = next(iter(images.values()))
            camera = opened.read_camera(first.camera_id)
            raise ValueError(
                f"{photos / name} cannot be read, or has not the size of {first.name}, "
                f"{camera.width} x {camera.height}: photos of a single camera have one size"
            )
        raise ValueError(f"{photos / name} is no picture that COLMAP can read")

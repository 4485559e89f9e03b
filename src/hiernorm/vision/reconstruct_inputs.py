"""The photos of a reconstruction: which files they are, and which have changed since a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hiernorm._files import write_atomically
from hiernorm._regular_files import read_regular
from hiernorm.adapters.colmap import ColmapDatabase
from hiernorm.adapters.colmap.records import MAX_IMAGES
from hiernorm.storage.errors import LockedError, NotADatabaseError
from hiernorm.storage.lock import WriterLock
from hiernorm.vision.photos import is_utf8, list_photos, read_photo

SETTINGS, DATABASE, DIGESTS = "settings.json", "database.db", "photos.json"
RESULTS = (DATABASE, "sparse", "model.png", "model.html")
"""What is written only beside the settings."""
LOCK = "reconstruct.lock"
DIGESTS_BYTES = 1 << 30
CAMERA = 0
"""COLMAP's number of the sensor type camera."""


def require_own_folder(out: Path) -> None:
    """Raise if results are in a folder that are not of this command; it would replace them."""
    if (out / SETTINGS).exists():
        return
    for name in RESULTS:
        place = out / name
        if not place.exists() or (
            place.is_dir() and all(file.is_dir() for file in place.rglob("*"))
        ):
            continue
        other = ", or match its features with `hiernorm colmap match`" if name == DATABASE else ""
        raise ValueError(
            f"{place} is there without {SETTINGS}, so this command has not made it: choose "
            f"another folder{other}"
        )


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Make a folder of results, and be the only process that writes to it inside the block."""
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(WriterLock(out, 0.0, LOCK))
        except LockedError:
            raise LockedError(
                f"{out} is locked: another process is writing its reconstruction there. Wait for "
                "it, then run this again"
            ) from None
        yield


def photo_names(photos: Path, out: Path) -> list[str]:
    """The photos in a folder and below it, by name; results of reconstructions are left out.

    Parameters
    ----------
    photos
        The folder.
    out
        Folder of the result. It may be the folder of the photos or below it.

    Raises
    ------
    ValueError
        If there are fewer than two, if COLMAP cannot store a name, or if a new folder of results
        has photos: the next run would leave them out.
    """
    listed = [path.relative_to(photos) for path in list_photos(photos)]
    folders = {folder for name in listed for folder in name.parents} - {Path()}
    inside = {folder for folder in folders if (photos / folder).resolve() == out.resolve()}
    results = inside | {folder for folder in folders if _is_result(photos / folder)}
    names = [name.as_posix() for name in listed if not results.intersection(name.parents)]
    if _is_result(photos):
        names = [name for name in names if name.split("/")[0] not in RESULTS]
    if inside and not (out / SETTINGS).exists():
        raise ValueError(f"{out} has photos: choose a folder without, or one that is not there yet")
    if len(names) < 2:
        found = f"{names[0]} only" if names else "none"
        raise ValueError(f"a reconstruction needs two photos or more, {photos} has {found}")
    for text in names:
        if not is_utf8(text):
            shown = text.encode("utf-8", "backslashreplace").decode()
            raise ValueError(f"{shown} has a name that is not UTF-8: rename it")
    return names


def _is_result(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (SETTINGS, DATABASE))


def digests_of(photos: Path, names: Sequence[str]) -> dict[str, str]:
    """SHA-256 of the files of photos, by name."""
    return {name: hashlib.sha256(read_photo(photos / name)).hexdigest() for name in names}


def identical_photos(digests: dict[str, str]) -> list[list[str]]:
    """Names of photos that have the same contents, in groups.

    Examples
    --------
    >>> identical_photos({"a.png": "5e1f", "b.png": "c0de", "c.png": "5e1f"})
    [['a.png', 'c.png']]
    """
    groups: dict[str, list[str]] = {}
    for name, digest in digests.items():
        groups.setdefault(digest, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def forget_changed(out: Path, digests: dict[str, str]) -> list[str]:
    """Remove photos from a database that were removed from the folder or replaced there.

    Their features and matches go with them, in one transaction. Then the digests are noted. They
    are noted before photos are described: what is described later is of this version or a newer
    one, which the next call finds to be changed. Photos without a digest are of an earlier version
    of this command and count as changed.

    Parameters
    ----------
    out
        Folder of the result.
    digests
        Of all photos that there are now, by name.

    Returns
    -------
    The names of the photos that were removed from the database.
    """
    file = out / DIGESTS
    known = _read_digests(file)
    try:
        changed = _remove_changed(out / DATABASE, digests, known)
    except NotADatabaseError:  # missing, or COLMAP was stopped while it made the tables
        changed = []
    if known != digests:
        write_atomically(file, json.dumps(digests, indent=0).encode())
    return changed


def _remove_changed(path: Path, digests: dict[str, str], known: dict[str, str]) -> list[str]:
    """Remove the images whose digests are not the known ones; returns their names."""
    with ColmapDatabase(path, writable=True) as database:
        changed = {
            image.image_id: image.name
            for image in database.images()
            if image.name not in digests or digests[image.name] != known.get(image.name)
        }
        if changed:
            _remove_images(database, list(changed))
    return sorted(changed.values())


def _read_digests(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    try:
        known = json.loads(read_regular(file, DIGESTS_BYTES))
        return {str(name): str(digest) for name, digest in known.items()}
    except (ValueError, AttributeError):
        raise ValueError(
            f"{file} is damaged: remove it, then all photos are described again"
        ) from None


def _remove_images(database: ColmapDatabase, numbers: Sequence[int]) -> None:
    """Remove images with all that belongs to them, and cameras that took no other image."""
    run = database.connection.execute
    with database.transaction():
        run("CREATE TEMP TABLE gone (image_id INTEGER PRIMARY KEY)")
        database.connection.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in numbers])
        for table in ("matches", "two_view_geometries"):
            run(
                f"DELETE FROM {table} WHERE pair_id / {MAX_IMAGES} IN gone "
                f"OR pair_id % {MAX_IMAGES} IN gone"
            )
        for table in ("keypoints", "descriptors"):
            run(f"DELETE FROM {table} WHERE image_id IN gone")
        of_images = f"sensor_type = {CAMERA} AND data_id IN gone"
        run(
            "DELETE FROM frames WHERE frame_id IN "
            f"(SELECT frame_id FROM frame_data WHERE {of_images})"
        )
        run(f"DELETE FROM frame_data WHERE {of_images}")
        run(f"DELETE FROM pose_priors WHERE corr_sensor_type = {CAMERA} AND corr_data_id IN gone")
        run("DELETE FROM images WHERE image_id IN gone")
        unused = "NOT IN (SELECT camera_id FROM images)"
        run(f"DELETE FROM rigs WHERE ref_sensor_type = {CAMERA} AND ref_sensor_id {unused}")
        run(f"DELETE FROM cameras WHERE camera_id {unused}")
        run("DROP TABLE gone")

"""Ingest of photos into a collection: several processes describe what is new or has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from hiernorm._deprecation import renamed_parameter
from hiernorm.extras import import_extra
from hiernorm.models import Model, load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import FeatureSettings, PhotoFeatures, describe_photo
from hiernorm.vision.photos import is_utf8, list_photos, read_grey, read_photo

BATCH = 16
"""Photos that are added to the collection in one step."""
COMPACT_FROM = 8
"""Number of segments from which the database is compacted."""

_worker_model: Model | None = None


@dataclass
class IngestResult:
    """The names of the photos by what was done, and the reason for each failure."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    keypoints: int = 0


def find_photos(arguments: list[Path]) -> list[Path]:
    """The photos among files and in folders, each once, in order."""
    found: dict[Path, None] = {}
    for argument in arguments:
        files = list_photos(argument) if argument.is_dir() else [argument]
        found.update(dict.fromkeys(file.resolve() for file in files))
    return list(found)


@renamed_parameter("recipe", "settings")
def ingest_photos(
    path: Path,
    files: list[Path],
    settings: FeatureSettings,
    *,
    workers: int = 1,
    device: str = "cpu",
    report: Callable[[int, int], None] = lambda done, total: None,
) -> IngestResult:
    """Describe photos and add them to the collection at ``path``, which is created if needed.

    Unchanged photos are skipped, changed ones replaced, unreadable ones reported and skipped. After
    Ctrl-C, photos that were described are in the collection. If no file is a picture, ValueError
    says so and no collection is made.

    Parameters
    ----------
    path
        The database, ``holiday.hn``.
    files
        The photos.
    settings
        How to extract features; those of an existing collection must be the same.
    workers
        Number of processes; the result does not depend on it.
    device
        Device of the model, see :func:`hiernorm.load_model`.
    report
        Called with the number of photos that are done, and of all.
    """
    model = load_model(settings.model, device=device)
    if files and not Path(path).exists():
        _require_photo(files)
    collection = Collection.open_or_create(path, settings, model)
    known = {photo.name: photo.digest for photo in collection.photos}
    ingested = IngestResult()
    wanted: list[tuple[Path, str]] = []
    for file in files:
        name = collection.name_of(file)
        if not is_utf8(name):  # the table could not hold it
            ingested.failed[name.encode("utf-8", "backslashreplace").decode()] = (
                "its name is not UTF-8: rename it"
            )
            continue
        try:
            digest = hashlib.sha256(read_photo(file)).hexdigest()
        except (OSError, ValueError) as error:
            ingested.failed[name] = _reason(error, file)
            continue
        if known.get(name) == digest:
            ingested.unchanged.append(name)
        else:
            wanted.append((file, digest))
    report(0, len(wanted))
    batch: list[tuple[Path, str, PhotoFeatures]] = []
    described = _describe_all([file for file, _ in wanted], settings, model, workers, device)
    try:
        for done, ((file, digest), result) in enumerate(zip(wanted, described, strict=True), 1):
            name = collection.name_of(file)
            if isinstance(result, str):
                ingested.failed[name] = result
            else:
                batch.append((file, digest, result))
                ingested.keypoints += len(result.frames)
                (ingested.replaced if name in known else ingested.added).append(name)
            if len(batch) == BATCH:
                collection.put(batch)
                batch = []
            report(done, len(wanted))
    except KeyboardInterrupt:  # what is described need not be described again
        if batch:
            collection.put(batch)
        raise
    if batch:
        collection.put(batch)
    if collection.database.info()["segments"] >= COMPACT_FROM:
        collection.compact()
    return ingested


def _require_photo(files: list[Path]) -> None:
    """Raise ValueError if none of the files is a picture: then no collection is made."""
    reason = ""
    for file in files:
        try:
            read_grey(file)
            return
        except (OSError, ValueError) as error:
            reason = str(error)
    raise ValueError(f"none of {len(files):,} files can be described: {reason}")


def _describe_all(
    files: list[Path], settings: FeatureSettings, model: Model, workers: int, device: str
) -> Iterator[PhotoFeatures | str]:
    """The features of each photo, or the reason why there are none, in order."""
    if workers == 1 or len(files) < 2:
        yield from (_describe_or_explain(file, settings, model) for file in files)
        return
    with ProcessPoolExecutor(
        min(workers, len(files)),
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(settings, device),
    ) as pool:
        try:
            yield from pool.map(_describe_in_worker, files, [settings] * len(files))
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker(settings: FeatureSettings, device: str) -> None:
    """Use one thread per process, so that processes do not compete for processors."""
    global _worker_model
    import_extra("cv2", "vision").setNumThreads(1)
    _worker_model = load_model(settings.model, threads=1, device=device)


def _describe_in_worker(file: Path, settings: FeatureSettings) -> PhotoFeatures | str:
    assert _worker_model is not None
    return _describe_or_explain(file, settings, _worker_model)


def _describe_or_explain(
    file: Path, settings: FeatureSettings, model: Model
) -> PhotoFeatures | str:
    try:
        return describe_photo(file, settings, model)
    except (OSError, ValueError) as error:
        return _reason(error, file)


def _reason(error: OSError | ValueError, file: Path) -> str:
    """Why a photo was skipped, in one line."""
    said = getattr(error, "strerror", None) or str(error)
    return " ".join(said.replace(str(file), os.path.basename(file)).split())

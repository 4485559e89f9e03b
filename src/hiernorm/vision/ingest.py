"""Intake of photos into a collection: by several processes, again only what changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from hiernorm.extras import import_extra
from hiernorm.models import Model, load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import Description, Recipe, describe_photo
from hiernorm.vision.photos import list_photos

BATCH = 16
"""Photos that are put into the collection at a time."""
COMPACT_FROM = 8
"""Segments of the database from which they are written anew as one."""

_worker_model: Model | None = None


@dataclass
class Outcome:
    """What became of the photos: names of the collection, and reasons where one failed."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    keypoints: int = 0


def find_photos(arguments: list[Path]) -> list[Path]:
    """The photos that files and folders mean, each once, in order."""
    found: dict[Path, None] = {}
    for argument in arguments:
        files = list_photos(argument) if argument.is_dir() else [argument]
        found.update(dict.fromkeys(file.resolve() for file in files))
    return list(found)


def take_in(
    path: Path,
    files: list[Path],
    recipe: Recipe,
    *,
    workers: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Describe photos into the collection at ``path``, which is made if there is none.

    Photos that are in with the same content are left alone, changed ones replaced, unreadable ones
    reported and skipped.

    Parameters
    ----------
    path
        The database, ``holiday.hn``.
    files
        The photos.
    recipe
        How to describe; an existing collection only takes photos described in its own way.
    workers
        Processes; the result does not depend on it.
    report
        Called with how many photos are done, and of how many.
    """
    model = load_model(recipe.model)
    collection = _open_or_create(path, recipe, model)
    known = {photo.name: photo.digest for photo in collection.photos}
    outcome = Outcome()
    wanted: list[tuple[Path, str]] = []
    for file in files:
        name = collection.name_of(file)
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            outcome.failed[name] = error.strerror or str(error)
            continue
        if known.get(name) == digest:
            outcome.unchanged.append(name)
        else:
            wanted.append((file, digest))
    report(0, len(wanted))
    batch: list[tuple[Path, str, Description]] = []
    described = _describe_all([file for file, _ in wanted], recipe, model, workers)
    for done, ((file, digest), result) in enumerate(zip(wanted, described, strict=True), 1):
        name = collection.name_of(file)
        if isinstance(result, str):
            outcome.failed[name] = result
        else:
            batch.append((file, digest, result))
            outcome.keypoints += len(result.frames)
            (outcome.replaced if name in known else outcome.added).append(name)
        if batch and (len(batch) == BATCH or done == len(wanted)):
            collection.put(batch)
            batch = []
        report(done, len(wanted))
    if collection.database.info()["segments"] >= COMPACT_FROM:
        collection.database.compact()
    return outcome


def _open_or_create(path: Path, recipe: Recipe, model: Model) -> Collection:
    if not path.exists():
        return Collection.create(path, recipe, model)
    collection = Collection.open(path)
    if collection.recipe != recipe or collection.model_digest != model.digest:
        raise ValueError(
            f"{path} was described with {collection.recipe}, model {collection.model_digest[:12]}; "
            f"now {recipe}, model {model.digest[:12]}, is asked for: use the same, "
            "or start a new collection"
        )
    return collection


def _describe_all(
    files: list[Path], recipe: Recipe, model: Model, workers: int
) -> Iterator[Description | str]:
    """Each photo's description, or the reason why there is none, in order."""
    if workers == 1 or len(files) < 2:
        yield from (_describe_or_explain(file, recipe, model) for file in files)
        return
    with ProcessPoolExecutor(
        min(workers, len(files)),
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(recipe,),
    ) as pool:
        try:
            yield from pool.map(_describe_in_worker, files, [recipe] * len(files))
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker(recipe: Recipe) -> None:
    """One thread for each process, or they would be in each other's way."""
    global _worker_model
    import_extra("cv2", "vision").setNumThreads(1)
    _worker_model = load_model(recipe.model, threads=1)


def _describe_in_worker(file: Path, recipe: Recipe) -> Description | str:
    assert _worker_model is not None
    return _describe_or_explain(file, recipe, _worker_model)


def _describe_or_explain(file: Path, recipe: Recipe, model: Model) -> Description | str:
    try:
        return describe_photo(file, recipe, model)
    except (OSError, ValueError) as error:
        return " ".join(str(error).replace(str(file), os.path.basename(file)).split())

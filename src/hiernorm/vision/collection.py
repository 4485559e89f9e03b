"""A collection of photos: a database of descriptors, and a table of where they come from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hiernorm._deprecation import renamed_attribute, renamed_parameter
from hiernorm._expansion import require_expansion
from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.models import Model
from hiernorm.payload.parquet_files import open_parquet
from hiernorm.storage.database import Database
from hiernorm.storage.lock import COLLECTION_LOCK, LOCKS, WriterLock
from hiernorm.vision.collection_table import COLUMNS, FORMAT, KEY, Photo, table_of, write_table
from hiernorm.vision.features import FeatureSettings, PhotoFeatures
from hiernorm.vision.frames import Frames

WAIT_SECONDS = 600.0
"""How long a change waits for another process that changes the collection."""
ATTEMPTS = 3
"""Attempts to read a table and a database that belong together."""


class _NotTogetherError(ValueError):
    """The table names descriptors that the database does not have."""


def _holds_files(folder: Path) -> bool:
    """Whether anything but locks is in a folder."""
    return any(entry.name not in LOCKS for entry in folder.iterdir())


class Collection:
    """Descriptors of photos in a database, and beside it a Parquet table of their keypoints.

    ``holiday.hn`` is the database, a folder, and ``holiday.parquet`` the table: photo, x, y, scale
    and angle of each keypoint, and the id of its descriptor. The table is authoritative: it is
    replaced as a whole after its descriptors are in the database. It names the database by its
    :attr:`hiernorm.Database.identity`, and another database in its place is refused. Descriptors
    that the table does not name, left by a process that was killed, are removed by the next
    :meth:`put`. One process changes both at a time; others wait. Ids are never given twice.

    Use :meth:`create` or :meth:`open`.
    """

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self.database = database
        self._load()

    recipe = renamed_attribute("recipe", "settings")

    @classmethod
    @renamed_parameter("recipe", "settings")
    def create(
        cls, path: str | os.PathLike[str], settings: FeatureSettings, model: Model
    ) -> Collection:
        """Make an empty collection for descriptors of a loaded model.

        Raises FileExistsError if it exists already.
        """
        path = Path(path)
        if table_of(path).exists():
            raise FileExistsError(f"{table_of(path)} exists, but there is no database {path}")
        database = Database.create(path, 128, major=model.major, alpha=model.alpha)
        write_table(
            table_of(path),
            database.identity,
            settings,
            model.digest,
            [],
            np.empty((0, 4)),
            np.empty(0, np.int64),
            [],
        )
        return cls(path, database)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Collection:
        """Open a collection; its database is mapped, its table read.

        Raises FileNotFoundError or ValueError that say what is missing or damaged.
        """
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"no collection at {path}: `hiernorm describe` makes one")
        if not table_of(path).is_file():
            raise FileNotFoundError(
                f"{path} has no table {table_of(path)}: it is no collection of photos"
            )
        return cls(path, Database.open(path))

    @classmethod
    def open_or_create(
        cls, path: str | os.PathLike[str], settings: FeatureSettings, model: Model
    ) -> Collection:
        """Open a collection, or make it if there is none; several processes may do so at once.

        Raises ValueError if it was made with other settings or another model.
        """
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        # The lock comes before all else in a collection: without it, the folder is another thing.
        if _holds_files(path) and not (path / COLLECTION_LOCK).exists():
            cls.open(path)
        with WriterLock(path, WAIT_SECONDS, COLLECTION_LOCK):
            if not _holds_files(path):
                return cls.create(path, settings, model)
        collection = cls.open(path)
        if collection.settings != settings or collection.model_digest != model.digest:
            was, now = collection.settings.differences(settings)
            if was == now:
                was, now = (
                    f"model {digest[:12]}" for digest in (collection.model_digest, model.digest)
                )
            raise ValueError(
                f"{path} was described with {was}; now {now} is asked for: use the same, or start "
                "a new collection"
            )
        return collection

    def compact(self) -> None:
        """Compact the database, when no other process changes the collection."""
        with WriterLock(self.path, WAIT_SECONDS, COLLECTION_LOCK):
            self.database.compact()

    def _load(self) -> None:
        """Read the table and the newest generation; both, until they belong together.

        A writer may replace the table and delete descriptors between the two.
        """
        for attempt in range(ATTEMPTS):
            self.database.refresh()
            try:
                self._read_table()
                return
            except _NotTogetherError:
                if attempt + 1 == ATTEMPTS:
                    raise

    def _read_table(self) -> None:
        table = table_of(self.path)
        try:
            with open_parquet(table, "vision") as file:
                require_expansion(table, file.metadata.num_rows * len(COLUMNS) * 8)
                content = file.read()
            about = json.loads(content.schema.metadata[KEY])
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']}, expected {FORMAT}")
            self.settings = FeatureSettings(**about["recipe"])
            self.model_digest: str = about["model_digest"]
            database: str | None = about.get("database")  # None in tables of earlier versions
            self.photos = [Photo(**photo) for photo in about["photos"]]
            numbers = {photo.name: number for number, photo in enumerate(self.photos)}
            names = content["photo"].to_pylist()
            self._photo_numbers = np.array([numbers[name] for name in names], np.int64)
            self._ids: Int64Array = np.asarray(content["id"].to_numpy(), np.int64)
            self._frames: Float64Array = np.column_stack(
                [content[name].to_numpy() for name in COLUMNS[1:5]]
            ).reshape(-1, 4)
        except Exception as error:  # pyarrow, json and this reader each have their own
            raise ValueError(f"{table} is no table of a collection, or damaged: {error}") from error
        if database not in (None, self.database.identity):
            found = self.database.identity or "one without identity"
            raise ValueError(
                f"{table} belongs to the database {database}, {self.path.name} is {found}: they do "
                f"not belong together; put the database back that was described with this table, "
                f"or describe the photos into a new collection"
            )
        missing = ~np.isin(self._ids, self.database.ids)
        if missing.any():
            raise _NotTogetherError(
                f"{table} names descriptors that {self.path} does not have "
                f"({int(missing.sum())} of {len(self._ids)}): they do not belong together"
            )
        self._order = np.argsort(self._ids, kind="stable")

    def __len__(self) -> int:
        """Number of photos."""
        return len(self.photos)

    @property
    def ids(self) -> Int64Array:
        """Ids ``(n,)`` of all keypoints, in the order of the table."""
        return self._ids

    def file_of(self, number: int) -> Path:
        """The path of a photo when it was described."""
        return self.path.parent / self.photos[number].name

    def keypoints_of(self, number: int) -> tuple[Int64Array, Frames]:
        """Ids ``(n,)`` and frames of the keypoints of a photo."""
        rows = np.flatnonzero(self._photo_numbers == number)
        return self._ids[rows], Frames(*self._frames[rows].T)

    def rows_of(self, ids: Int64Array) -> Int64Array:
        """Rows of the table for ids; KeyError names the first unknown id."""
        found = np.searchsorted(self._ids, ids, sorter=self._order)
        rows = self._order[np.minimum(found, len(self._order) - 1)] if len(self._ids) else found
        known = np.zeros(len(ids), np.bool_) if not len(self._ids) else self._ids[rows] == ids
        if not known.all():
            raise KeyError(f"no keypoint has the id {ids[np.argmin(known)]}")
        return rows

    def photos_of(self, ids: Int64Array) -> Int64Array:
        """The numbers of the photos that keypoints lie in."""
        return self._photo_numbers[self.rows_of(ids)]

    def frames_of(self, ids: Int64Array) -> Frames:
        """The frames of keypoints."""
        return Frames(*self._frames[self.rows_of(ids)].T)

    def name_of(self, file: Path) -> str:
        """The name that a file has, or would have, in this collection."""
        return relative_name(self.path, file)

    def put(self, described: Sequence[tuple[Path, str, PhotoFeatures]]) -> None:
        """Add photos, replacing those of the same name: (file, digest, description) each.

        All of them are added when this returns; if the process dies before, none is. What other
        processes have added since this object was opened is kept.
        """
        with WriterLock(self.path, WAIT_SECONDS, COLLECTION_LOCK):
            self._load()
            self._put(described)

    def _put(self, described: Sequence[tuple[Path, str, PhotoFeatures]]) -> None:
        orphans = np.setdiff1d(self.database.ids, self._ids)
        if len(orphans):
            self.database.delete(orphans)
        names = [self.name_of(file) for file, _, _ in described]
        kept_photos = [photo for photo in self.photos if photo.name not in set(names)]
        stays = np.isin(
            [self.photos[number].name for number in self._photo_numbers] or [""], names, invert=True
        )[: len(self._ids)]
        next_id = self.database.next_id
        counts = [len(description.frames) for _, _, description in described]
        new_ids = np.arange(next_id, next_id + sum(counts), dtype=np.int64)
        if len(new_ids):
            rows = np.concatenate([description.descriptors for _, _, description in described])
            self.database.add(rows, new_ids)
        new_photos = [
            Photo(name, digest, description.width, description.height)
            for name, (_, digest, description) in zip(names, described, strict=True)
        ]
        frames = [description.frames for _, _, description in described]
        new_frames = [np.column_stack((f.x, f.y, f.sigma, f.angle)) for f in frames]
        old_names = [self.photos[number].name for number in self._photo_numbers[stays]]
        removed = self._ids[~stays]
        write_table(
            table_of(self.path),
            self.database.identity,
            self.settings,
            self.model_digest,
            sorted(kept_photos + new_photos, key=lambda photo: photo.name),
            np.concatenate((self._frames[stays], *new_frames)),
            np.concatenate((self._ids[stays], new_ids)),
            old_names + [n for n, count in zip(names, counts, strict=True) for _ in range(count)],
        )
        if len(removed):
            self.database.delete(removed)
        self._load()


def relative_name(path: Path, file: Path) -> str:
    """The path of ``file`` relative to the folder of the collection ``path``."""
    return Path(os.path.relpath(Path(file).resolve(), path.resolve().parent)).as_posix()

"""COLMAP's database: images, keypoints, descriptors and matches in one SQLite file.

A pair of images is written in one statement of a transaction: all of its matches or none. Readers
beside the writer see whole transactions, and a killed writer leaves the last one that it committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm._closing import Closing
from hiernorm.adapters.colmap.blobs import checked_shape, float_width, to_array, to_floats
from hiernorm.adapters.colmap.connection import (
    column_names,
    explained,
    open_database,
    require_schema,
)
from hiernorm.adapters.colmap.options import DescriptorType
from hiernorm.adapters.colmap.records import Pair, StoredCamera, StoredImage, pair_id
from hiernorm.array_types import AnyArray, Float32Array, UInt8Array, UInt32Array
from hiernorm.storage.errors import (
    DamagedError,
    FormatVersionError,
)

WAIT_SECONDS = 30.0
"""How long a locked database is waited for."""


class ColmapDatabase(Closing):
    """A database of COLMAP, opened for reading or for writing features and matches.

    Parameters
    ----------
    path
        The file; it must exist.
    writable
        Whether features or matches will be written.
    wait_seconds
        How long to wait for another process that is writing.
    """

    def __init__(
        self, path: Path | str, *, writable: bool = False, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.path = Path(path)
        self._lock = RLock()
        self.connection = open_database(self.path, writable=writable, wait_seconds=wait_seconds)
        try:
            with self._errors():
                require_schema(self.connection, self.path)
                self._has_types = "type" in column_names(self.connection, "descriptors")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file. What was not committed is not in it."""
        self.connection.close()

    def images(self) -> list[StoredImage]:
        """All images, by id."""
        with self._errors():
            rows = self.connection.execute(
                "SELECT images.image_id, name, rows FROM images "
                "LEFT JOIN descriptors USING (image_id) ORDER BY image_id"
            ).fetchall()
        for _, name, count in rows:
            if count is not None and not isinstance(count, int):
                raise DamagedError(
                    f"{self.path}: descriptors of image {name!r} have {count!r} rows, expected a "
                    "number"
                )
        return [StoredImage(int(i), str(name), count) for i, name, count in rows]

    def descriptor_type(self, image_id: int) -> DescriptorType:
        """The type of an image's descriptors; SIFT where the database has no types yet.

        COLMAP gives databases without types the type SIFT when it opens them.
        """
        if not self._has_types:
            return DescriptorType.SIFT
        with self._errors():
            row = self.connection.execute(
                "SELECT type FROM descriptors WHERE image_id = ?", (image_id,)
            ).fetchone()
        if row is None:
            raise KeyError(_no_descriptors(self.name(image_id)))
        try:
            return DescriptorType(row[0])
        except ValueError:
            raise FormatVersionError(
                f"{self.path}: image {self.name(image_id)!r} has descriptors of type {row[0]}, "
                f"known are {', '.join(f'{t.value} ({t.name})' for t in DescriptorType)}"
            ) from None

    def descriptor_shape(self, image_id: int) -> tuple[int, int]:
        """Number and dimensions of an image's descriptors, checked without reading them."""
        kind = self.descriptor_type(image_id)
        with self._errors():
            row = self.connection.execute(
                "SELECT rows, cols, LENGTH(data) FROM descriptors WHERE image_id = ?", (image_id,)
            ).fetchone()
        if row is None:
            raise KeyError(_no_descriptors(self.name(image_id)))
        what = self._descriptors_of(image_id)
        rows, cols = checked_shape(what, 1, row[0], row[1], row[2] or 0)
        return rows, cols if kind == DescriptorType.SIFT else float_width(what, cols)

    def descriptors(self, image_id: int) -> UInt8Array | Float32Array:
        """The descriptors of an image: ``(n, d)`` uint8 for SIFT, float32 for all other types."""
        kind = self.descriptor_type(image_id)
        rows = self._blob("descriptors", image_id, np.uint8)
        if kind == DescriptorType.SIFT:
            return rows
        return to_floats(f"{self._descriptors_of(image_id)} (type {kind.name})", rows)

    def keypoints(self, image_id: int) -> Float32Array:
        """The keypoints ``(n, 2)``, ``(n, 4)`` or ``(n, 6)`` of an image; x and y come first."""
        found: Float32Array = self._blob("keypoints", image_id, np.float32)
        if len(found) and found.shape[1] < 2:
            raise DamagedError(
                f"{self.path}: keypoints of image {self.name(image_id)!r} have {found.shape[1]} "
                "columns, expected 2, 4 or 6"
            )
        return found

    def stored_bytes(self, table: str) -> int:
        """Bytes of the arrays in a table: keypoints, descriptors or matches."""
        with self._errors():
            row = self.connection.execute(f"SELECT SUM(LENGTH(data)) FROM {table}").fetchone()
        return int(row[0] or 0)

    def matched_pairs(self) -> set[int]:
        """Ids of the pairs that have matches stored, be it none of them."""
        with self._errors():
            return {int(row[0]) for row in self.connection.execute("SELECT pair_id FROM matches")}

    def verified_pairs(self) -> set[int]:
        """Ids of the pairs that have matches which passed COLMAP's geometric verification."""
        with self._errors():
            found = self.connection.execute(
                "SELECT pair_id FROM two_view_geometries WHERE rows > 0"
            )
            return {int(row[0]) for row in found}

    def estimated_pairs(self) -> set[int]:
        """Ids of the pairs that COLMAP's geometric verification has seen, be it without success."""
        with self._errors():
            found = self.connection.execute("SELECT pair_id FROM two_view_geometries")
            return {int(row[0]) for row in found}

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        with self._errors():
            return column_names(self.connection, table)

    def camera(self, image_id: int) -> StoredCamera:
        """The camera of an image."""
        with self._errors():
            row = self.connection.execute(
                "SELECT camera_id, model, width, height, params, prior_focal_length FROM images "
                "JOIN cameras USING (camera_id) WHERE image_id = ?",
                (image_id,),
            ).fetchone()
        if row is None:
            raise KeyError(f"image {self.name(image_id)!r} has no camera")
        camera_id, model, width, height, params, known = row
        return StoredCamera(
            camera_id, model, width, height, np.frombuffer(params, np.float64), bool(known)
        )

    def matches(self, pair: Pair) -> UInt32Array | None:
        """The stored matches ``(m, 2)`` of a pair; None if the pair was not matched."""
        with self._errors():
            row = self.connection.execute(
                "SELECT rows, cols, data FROM matches WHERE pair_id = ?", (pair_id(pair),)
            ).fetchone()
        if row is None:
            return None
        return self._array(f"matches of pair {pair}", np.uint32, *row)

    def write_matches(self, found: Iterable[tuple[Pair, npt.NDArray[np.integer]]]) -> None:
        """Write the matches of pairs in one transaction, and drop their former geometries.

        Parameters
        ----------
        found
            Pairs with their matches ``(m, 2)``: the keypoint of the first image, of the second.
        """
        with self.transaction():
            for pair, matches in found:
                data = np.ascontiguousarray(matches, np.uint32)
                blob = data.tobytes() if len(data) else None
                key = pair_id(pair)
                self.connection.execute(
                    "REPLACE INTO matches (pair_id, rows, cols, data) VALUES (?, ?, 2, ?)",
                    (key, len(data), blob),
                )
                self.connection.execute("DELETE FROM two_view_geometries WHERE pair_id = ?", (key,))

    def write_geometries(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows of the table ``two_view_geometries`` in one transaction.

        Parameters
        ----------
        columns
            Names of the columns.
        rows
            Their values as COLMAP stores them.
        """
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with self.transaction():
            self.connection.executemany(
                f"REPLACE INTO two_view_geometries ({names}) VALUES ({marks})", rows
            )

    def write_features(
        self, image_id: int, keypoints: Float32Array, descriptors: Float32Array
    ) -> None:
        """Write keypoints and float32 descriptors of an image, in one transaction.

        Refused in a database without types, where they would be read as SIFT.

        Parameters
        ----------
        image_id
            An image of the database.
        keypoints
            ``(n, 4)``: x, y, scale and angle in radians.
        descriptors
            ``(n, d)``; COLMAP has no name for their type.
        """
        rows = np.ascontiguousarray(descriptors, np.float32).view(np.uint8)
        frames = np.ascontiguousarray(keypoints, np.float32)
        if len(frames) != len(rows):
            raise ValueError(
                f"image {self.name(image_id)!r} has {len(frames)} keypoints and {len(rows)} "
                "descriptors, expected as many"
            )
        if not self._has_types:
            raise FormatVersionError(
                f"{self.path} has no types of descriptors, so float32 descriptors would be read "
                "as SIFT: open it once with COLMAP 4 or newer, which adds the types"
            )
        with self.transaction():
            self.connection.execute(
                "REPLACE INTO keypoints (image_id, rows, cols, data) VALUES (?, ?, ?, ?)",
                (image_id, *frames.shape, frames.tobytes()),
            )
            self.connection.execute(
                "REPLACE INTO descriptors (image_id, type, rows, cols, data) "
                "VALUES (?, ?, ?, ?, ?)",
                (image_id, int(DescriptorType.UNDEFINED), *rows.shape, rows.tobytes()),
            )

    def require_unlocked(self) -> None:
        """LockedError if another process is writing, and still is after ``wait_seconds``."""
        with self.transaction():
            pass

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what the block changes, all or nothing."""
        with self._errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors that say what to do; one connection serves all threads."""
        with explained(self.path), self._lock:
            yield

    def name(self, image_id: int) -> str:
        """The name of an image; its number if it has none."""
        with self._lock:
            row = self.connection.execute(
                "SELECT name FROM images WHERE image_id = ?", (image_id,)
            ).fetchone()
        return f"#{image_id}" if row is None else str(row[0])

    def _blob(self, table: str, image_id: int, dtype: npt.DTypeLike) -> AnyArray:
        with self._errors():
            row = self.connection.execute(
                f"SELECT rows, cols, data FROM {table} WHERE image_id = ?", (image_id,)
            ).fetchone()
        if row is None:
            name = self.name(image_id)
            raise KeyError(
                _no_descriptors(name)
                if table == "descriptors"
                else f"image {name!r} has no {table}"
            )
        return self._array(f"{table} of image {self.name(image_id)!r}", dtype, *row)

    def _array(
        self, what: str, dtype: npt.DTypeLike, rows: object, cols: object, data: bytes | None
    ) -> AnyArray:
        return to_array(f"{self.path}: {what}", dtype, rows, cols, data)

    def _descriptors_of(self, image_id: int) -> str:
        """Names descriptors in errors."""
        return f"{self.path}: descriptors of image {self.name(image_id)!r}"


def _no_descriptors(name: str) -> str:
    return (
        f"image {name!r} has no descriptors: run COLMAP's feature extraction for it, or leave its "
        "pairs out"
    )

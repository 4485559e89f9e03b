"""Scenes of patches in the UBC (Brown) PhotoTour format, from a folder or straight from a zip."""

from __future__ import annotations

import re
import zipfile
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import AnyArray, Float64Array, Int64Array, UInt8Array
from hiernorm.learn.bitmap import decode_bitmap
from hiernorm.learn.pairs import Pairs, make_pairs, parse_pairs

PATCH = 64
"""Pixels of a patch, each way."""
GRID = 16
"""Patches of a mosaic, each way."""

MATCH_FILE = re.compile(r"m50_(\d+)_\d+_\d+\.txt")


class PhotoTour:
    """A scene: patches, the 3-D point that each shows, and pairs that match or do not.

    Parameters
    ----------
    root
        The folder that has the scene.
    scene
        Its name: the folder ``root/scene`` or, failing that, the archive ``root/scene.zip``. A name
        that ends in ``.zip`` is that archive.

    Examples
    --------
    >>> scene = PhotoTour("data", "castle")  # doctest: +SKIP
    >>> scene.patches.shape, scene.points.shape  # doctest: +SKIP
    ((14000, 64, 64), (14000,))
    """

    def __init__(self, root: str | Path, scene: str) -> None:
        self.scene = scene.removesuffix(".zip")
        self._files = _find_files(Path(root), scene)

    @classmethod
    def open(cls, path: str | Path) -> PhotoTour:
        """Open a scene by the path of its folder or its zip."""
        path = Path(path)
        return cls(path.parent, path.name)

    def __len__(self) -> int:
        """Return the number of patches."""
        return len(self.points)

    def __repr__(self) -> str:
        """Show name and sizes."""
        return f"PhotoTour({self.scene!r}, {len(self):,} patches, {len(self.point_ids):,} points)"

    @cached_property
    def points(self) -> Int64Array:
        """The 3-D point of each patch, ``(n,)``: the first column of ``info.txt``."""
        table = self._read_table("info.txt", np.int64)
        if len(table) == 0:
            raise ValueError(f"{self._files.label('info.txt')} lists no patches")
        return np.ascontiguousarray(table[:, 0])

    @cached_property
    def point_ids(self) -> Int64Array:
        """The distinct points, ascending."""
        return np.unique(self.points)

    @cached_property
    def interest(self) -> Float64Array | None:
        """The rows of ``interest.txt``, ``(n, columns)``, or None where there is no such file."""
        if "interest.txt" not in self._files.names:
            return None
        table = self._read_table("interest.txt", np.float64)
        if len(table) != len(self):
            raise ValueError(
                f"{self._files.label('interest.txt')} has {len(table):,} rows, "
                f"info.txt has {len(self):,}"
            )
        return table

    @cached_property
    def patches(self) -> UInt8Array:
        """All patches, uint8 ``(n, 64, 64)``."""
        mosaics = sorted(n for n in self._files.names if re.fullmatch(r"patches\d+\.bmp", n))
        needed = -(-len(self) // GRID**2)
        if len(mosaics) < needed:
            raise ValueError(
                f"{self._files.label('info.txt')} lists {len(self):,} patches, which need "
                f"{needed} mosaics; there are {len(mosaics)}"
            )
        patches = np.empty((needed * GRID**2, PATCH, PATCH), np.uint8)
        for i, name in enumerate(mosaics[:needed]):
            label = self._files.label(name)
            mosaic = decode_bitmap(self._files.read(name), label)
            if mosaic.shape != (GRID * PATCH, GRID * PATCH):
                raise ValueError(
                    f"{label} must have 1024x1024 pixels, got {mosaic.shape[1]}x{mosaic.shape[0]}"
                )
            cells = mosaic.reshape(GRID, PATCH, GRID, PATCH).swapaxes(1, 2)
            patches[i * GRID**2 : (i + 1) * GRID**2] = cells.reshape(-1, PATCH, PATCH)
        return patches[: len(self)]

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of the scene's largest ``m50`` file, or balanced ones made from its points."""
        found = [m for m in map(MATCH_FILE.fullmatch, self._files.names) if m]
        if not found:
            return make_pairs(self.points)
        name = max(found, key=lambda m: (int(m[1]), m[0]))[0]
        return parse_pairs(self._read_table(name, np.int64), self.points, self._files.label(name))

    def _read_table(self, name: str, dtype: type[Any]) -> AnyArray:
        """Return the numbers of a text file, ``(rows, columns)``."""
        label = self._files.label(name)
        try:
            lines = self._files.read(name).decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{label} is not a text file of numbers: {error}") from error
        rows = [line.split() for line in lines if line.strip()]
        if not rows:
            return np.empty((0, 1), dtype)
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise ValueError(
                    f"{label}, row {i + 1}: {len(row)} columns, the first row has {len(rows[0])}"
                )
        try:
            return np.array(rows, dtype=np.str_).astype(dtype)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{label} is not a text file of numbers: {error}") from error


class _FolderReader:
    """The files of a scene's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = frozenset(p.name for p in path.iterdir())

    def label(self, name: str) -> str:
        """Return the file's name in errors."""
        return str(self._path / name)

    def read(self, name: str) -> bytes:
        """Return the whole file."""
        if name not in self.names:
            raise FileNotFoundError(f"{self._path} has no {name}; it is no scene of patches")
        return (self._path / name).read_bytes()


class _ZipReader:
    """The files of a scene's zip, in any folder of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._members = {i.filename.rsplit("/", 1)[-1]: i for i in archive.infolist()}
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is no complete zip archive: {error}") from error
        self.names = frozenset(self._members)

    def label(self, name: str) -> str:
        """Return the file's name in errors."""
        return f"{self._path}:{name}"

    def read(self, name: str) -> bytes:
        """Return the whole file; its checksum is verified."""
        if name not in self.names:
            raise FileNotFoundError(f"{self._path} has no {name}; it is no scene of patches")
        try:
            with zipfile.ZipFile(self._path) as archive:
                return archive.read(self._members[name])
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{self.label(name)} is corrupt: {error}") from error


def _find_files(root: Path, scene: str) -> _FolderReader | _ZipReader:
    """Return the scene's folder or archive."""
    path, archive = root / scene, root / f"{scene.removesuffix('.zip')}.zip"
    if path.is_dir():
        return _FolderReader(path)
    if archive.is_file():
        return _ZipReader(archive)
    if path.is_file():
        raise ValueError(f"{path} is no scene of patches: a scene is a folder or a .zip")
    if path == archive:
        raise FileNotFoundError(f"no scene {scene!r}: there is no {archive}")
    raise FileNotFoundError(f"no scene {scene!r}: neither {path}/ nor {archive.name} in {root}")

"""The writer of scenes: mosaics of patches with their lists, into a folder or a zip, or nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np

from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.bitmap import encode_bitmap
from hiernorm.learn.pairs import make_pairs
from hiernorm.learn.phototour import GRID, PATCH
from hiernorm.vision.frames import Frames

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file in a zip: the bytes of a scene must not tell when it was made."""


class SceneWriter:
    """Writes a scene patch by patch; the scene appears when it is complete, or not at all.

    A scene is made beside its final place and renamed at the end. After an error nothing is left.

    Parameters
    ----------
    out
        Folder to make, or zip if the name ends in ``.zip``. Must not exist yet.
    pairs
        Matching pairs, and as many non-matching ones, in the match file; fewer where there are
        not as many.
    seed
        Seed of the choice of pairs.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from hiernorm.vision import Frames
    >>> out = Path(tempfile.mkdtemp()) / "tiny.zip"
    >>> two = Frames([9, 9], [9, 9], [2, 2], [0, 0])
    >>> with SceneWriter(out, pairs=2) as writer:
    ...     for point in range(2):
    ...         writer.add(point, np.zeros((2, 64, 64), np.uint8), np.array([0, 1]), two)
    >>> zipfile.ZipFile(out).namelist()
    ['patches0000.bmp', 'info.txt', 'interest.txt', 'm50_2_2_0.txt']
    """

    def __init__(self, out: Path, *, pairs: int, seed: int = 0) -> None:
        self.out = Path(out)
        if self.out.exists():
            raise FileExistsError(
                f"{self.out} exists already: remove it first, or choose another name"
            )
        self._pairs = pairs
        self._seed = seed
        self._mosaic = np.zeros((GRID, PATCH, GRID, PATCH), np.uint8)
        self._points: list[int] = []
        self._info: list[str] = []
        self._interest: list[str] = []

    def __len__(self) -> int:
        """Patches added so far."""
        return len(self._points)

    def __enter__(self) -> SceneWriter:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, since a rename is atomic only within one file system.
        self._workshop = Path(tempfile.mkdtemp(prefix=f".{self.out.name}.", dir=self.out.parent))
        self._unfinished = self._workshop / "scene"
        is_zip = self.out.suffix.lower() == ".zip"
        self._store: _Store = (_Zip if is_zip else _Folder)(self._unfinished)
        return self

    def add(self, point: int, patches: UInt8Array, images: Int64Array, frames: Frames) -> None:
        """Add all views of one point: patches (n, 64, 64), their images (n,) and frames (n)."""
        if patches.dtype != np.uint8 or patches.shape[1:] != (PATCH, PATCH):
            raise ValueError(
                f"expected patches of shape (n, {PATCH}, {PATCH}), dtype uint8; "
                f"got {patches.shape}, {patches.dtype}"
            )
        if not len(patches) == len(images) == len(frames):
            raise ValueError(
                f"expected as many images and frames as patches, got {len(images)} and "
                f"{len(frames)} for {len(patches)}"
            )
        if self._points and point <= self._points[-1]:
            raise ValueError(
                f"points must be added in increasing order, got {point} after {self._points[-1]}"
            )
        for patch, image, x, y, sigma, angle in zip(
            patches, images, frames.x, frames.y, frames.sigma, frames.angle, strict=True
        ):
            row, column = divmod(len(self._points) % GRID**2, GRID)
            self._mosaic[row, :, column] = patch
            self._points.append(point)
            self._info.append(f"{point} {image}\n")
            self._interest.append(f"{image} {x:.3f} {y:.3f} {sigma:.4f} {angle:.5f}\n")
            if len(self._points) % GRID**2 == 0:
                self._write_mosaic()

    def _write_mosaic(self) -> None:
        mosaic = encode_bitmap(self._mosaic.reshape(GRID * PATCH, GRID * PATCH))
        number = (len(self._points) - 1) // GRID**2
        self._store.write(f"patches{number:04d}.bmp", mosaic)
        self._mosaic[:] = 0

    def _finish(self) -> None:
        """Write what is still in memory, then give the scene its name."""
        if len(self._points) % GRID**2:
            self._write_mosaic()
        points = np.array(self._points, np.int64)
        pairs = make_pairs(points, self._pairs, self._seed)
        # Both kinds mixed, as in the official files.
        order = np.random.default_rng([self._seed, 1]).permutation(len(pairs))
        both = zip(pairs.first[order], pairs.second[order], strict=True)
        matches = [f"{a} {points[a]} 0 {b} {points[b]} 0 0\n" for a, b in both]
        count = len(pairs) // 2
        self._store.write("info.txt", "".join(self._info).encode())
        self._store.write("interest.txt", "".join(self._interest).encode())
        self._store.write(f"m50_{count}_{count}_0.txt", "".join(matches).encode())
        self._store.close()
        if self.out.exists():
            raise FileExistsError(f"{self.out} has appeared meanwhile; it is left as it is")
        os.rename(self._unfinished, self.out)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            # A zip writes its list of contents when it is closed, which a full disk refuses too.
            with suppress(OSError):
                self._store.close()
            shutil.rmtree(self._workshop, ignore_errors=True)


class _Store(Protocol):
    """Where the files of a scene go."""

    def write(self, name: str, content: bytes) -> None:
        """Write one file."""

    def close(self) -> None:
        """Finish; may be called again."""


class _Folder:
    """A folder of files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir()

    def write(self, name: str, content: bytes) -> None:
        with open(self._path / name, "wb") as file:
            file.write(content)

    def close(self) -> None:
        pass


class _Zip:
    """A zip without dates or owners, so that equal scenes are equal files."""

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)

    def write(self, name: str, content: bytes) -> None:
        entry = zipfile.ZipInfo(name, _EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = 0o644 << 16
        self._file.writestr(entry, content)

    def close(self) -> None:
        self._file.close()

"""Two processes that describe photos into one collection at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.extras import check_extra, import_extra

PHOTOS = 3
"""Photos of each process."""


def two_describers(folder: Path, seed: int, deadline: float) -> Counter[str]:
    """Describe two folders into one collection at once; it must hold both, each photo its own.

    Counts collections that hold for every photo what a process alone finds there.
    """
    try:
        check_extra("vision", "cv2", "onnxruntime", "pyarrow")
    except ImportError:
        return Counter({"not available": 1})
    found: Counter[str] = Counter()
    folder.mkdir()
    for name in ("a", "b"):
        _draw_photos(folder / name, seed + ord(name))
    _describe(folder / "alone.hn", [folder / "a", folder / "b"]).wait()
    right = _contents(folder / "alone.hn")
    while not found or time.monotonic() < deadline:
        both = [_describe(folder / "both.hn", [folder / name]) for name in ("a", "b")]
        codes = [process.wait(timeout=600) for process in both]
        whole = codes == [0, 0] and _contents(folder / "both.hn") == right
        found["whole" if whole else "wrong"] += 1
        shutil.rmtree(folder / "both.hn")
        (folder / "both.parquet").unlink()
    return found


def _describe(path: Path, photos: list[Path]) -> subprocess.Popen[bytes]:
    code = "from hiernorm.cli import main; main()"
    command = [sys.executable, "-c", code, "describe", *map(str, photos), "-o", str(path)]
    command += ["--workers", "1", "--keypoints", "60"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _contents(path: Path) -> dict[str, tuple[Any, ...]]:
    """Of each photo, its keypoints and descriptors, sorted."""
    from hiernorm.vision.collection import Collection

    collection = Collection.open(path)
    assert collection.database.check().ok
    found = {}
    for number, photo in enumerate(collection.photos):
        ids, frames = collection.keypoints_of(number)
        values = np.column_stack([frames.x, frames.y, collection.database.reconstruct(ids)])
        found[photo.name] = (photo.digest, sorted(map(tuple, values.tolist())))
    return found


def _draw_photos(folder: Path, seed: int) -> None:
    cv2 = import_extra("cv2", "vision")
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(PHOTOS):
        image = np.full((200, 260), 128, np.uint8)
        for _ in range(60):
            corners = rng.integers(0, 240, 4).tolist()
            cv2.rectangle(image, corners[:2], corners[2:], int(rng.integers(256)), -1)
        cv2.imwrite(str(folder / f"{folder.name}{number}.png"), image)

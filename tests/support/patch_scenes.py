"""Tiny scenes in the UBC format for tests, written by other code than the package's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hiernorm
from paths import REAL_SCENES


def shared_scene(name: str) -> Path:
    """The path of a real scene, or a skipped test where it is not to be had."""
    path = REAL_SCENES / f"{name}.zip"
    if not path.is_file():
        pytest.skip(f"needs the scene {path}")
    return path


def draw_patches(points: int, views: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Blobs that differ from point to point, with noise from view to view; and their points."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(0, 255, (points, 8, 8)).repeat(8, axis=1).repeat(8, axis=2)
    noisy = coarse.repeat(views, axis=0) + rng.normal(0, 20, (points * views, 64, 64))
    return np.clip(noisy, 0, 255).astype(np.uint8), np.arange(points).repeat(views)


def write_scene(folder: Path, points: int = 24, views: int = 4, pairs: bool = True) -> Path:
    """Write a scene; OpenCV writes the mosaics, so that the reader meets another's files."""
    import cv2

    folder.mkdir(parents=True)
    patches, labels = draw_patches(points, views)
    cells = np.zeros((-(-len(patches) // 256) * 256, 64, 64), np.uint8)
    cells[: len(patches)] = patches
    for i, block in enumerate(cells.reshape(-1, 16, 16, 64, 64)):
        mosaic = block.swapaxes(1, 2).reshape(1024, 1024)
        cv2.imwrite(str(folder / f"patches{i:04d}.bmp"), mosaic)
    (folder / "info.txt").write_text("".join(f"{p} 0\n" for p in labels))
    (folder / "interest.txt").write_text("0 1.5 2.5 1.0 0.0\n" * len(labels))
    if pairs:
        rng = np.random.default_rng(1)
        rows = []
        for point in range(points):
            a, b = point * views, point * views + 1
            other = int((a + views * rng.integers(1, points)) % len(labels))
            rows.append(f"{a} {point} 0 {b} {point} 0 0\n")
            rows.append(f"{a} {point} 0 {other} {labels[other]} 0 0\n")
        (folder / f"m50_{points}_{points}_0.txt").write_text("".join(rows))
    return folder


def random_patches(n: int, seed: int = 0, size: int = 64) -> np.ndarray:
    """Patches of noise, uint8 ``(n, size, size)``."""
    return np.random.default_rng(seed).integers(0, 256, (n, size, size), dtype=np.uint8)


MODELS = hiernorm.available_models()

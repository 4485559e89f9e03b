"""What one pass over all photos could save, against a pass for each pair of photos.

A grouped search finds the best two of each photo in one pass over the descriptors of all photos. It
bounds every pair, as the separate passes do, and it needs a threshold for each photo, so that it
computes their products too. A search for the best two of *all* photos has one threshold, a higher
one, and computes fewer products. It does not find the matches of every pair, but no grouped search
takes less time. Both are timed here.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.reconstruction.scene import Scene
from hiernorm.adapters.colmap import ColmapDatabase
from hiernorm.array_types import UInt8Array
from hiernorm.byte_matching import ByteDescriptors, ByteRotation, match_bytes


def measure_grouped(scene: Scene, rounds: int) -> dict[str, Any]:
    """Processor seconds of matching the first photo with all others: separately, and at once."""
    with ColmapDatabase(scene.source("sift")) as opened:
        photos: list[UInt8Array] = [
            opened.descriptors(image.image_id).astype(np.uint8) for image in opened.images()
        ]
    rotation = ByteRotation(np.concatenate([rows[::16] for rows in photos]))
    first, *others = (ByteDescriptors(rows, rotation) for rows in photos)
    joined = ByteDescriptors(np.concatenate(photos[1:]), rotation)
    found: dict[str, Any] = {"photos": len(photos), "rounds": rounds}
    for name, sets in (("separate", others), ("joined", [joined])):
        best = np.inf
        for _ in range(rounds):
            start = time.process_time()
            products = sum(match_bytes(first, one, threads=1).products for one in sets)
            best = min(best, time.process_time() - start)
        found[name] = {"processor_seconds": best, "products": products}
    return found

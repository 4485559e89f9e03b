"""The data of the explorer: a collection and the neighbours of its keypoints, as JSON."""

from __future__ import annotations

import hashlib
import time
from functools import lru_cache
from typing import Any

import numpy as np

from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.collection import Collection
from hiernorm.vision.drawing import read_colour
from hiernorm.vision.features import reduce_image
from hiernorm.vision.frames import Frames
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.photos import read_grey, read_photo

SAMPLE = 20_000
"""Descriptors whose scores make the curve of all scores; the hits are exact."""
CURVE_POINTS = 120
LONGEST_SIDE = 1600
"""Maximum size of a photo on the page in pixels."""
MAX_NEIGHBOURS = 100
CACHED_PHOTOS = 8
THUMBNAIL_SIDE, CACHED_THUMBNAILS = 160, 1024
START_KEYPOINTS = 400
"""Keypoints of a photo among which the page's first one is chosen: as many as the page shows."""


class Explorer:
    """Reads a collection for the page; photos and keypoints are named by number only.

    No request contains a path. A photo is read only if it still has the content that was described,
    so the table of a collection cannot make the explorer show other files.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        ids = collection.ids
        chosen = ids[np.linspace(0, len(ids) - 1, min(SAMPLE, len(ids))).astype(np.int64)]
        self._sample: Float32Array = collection.database.reconstruct(chosen)
        self._grey = lru_cache(CACHED_PHOTOS)(self._read_grey)
        self.thumbnail = lru_cache(CACHED_THUMBNAILS)(self._thumbnail)

    def overview(self) -> dict[str, Any]:
        """The photos and how they were described."""
        numbers, counts = np.unique(
            self.collection.photos_of(self.collection.ids), return_counts=True
        )
        keypoints = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        return {
            "name": self.collection.path.name,
            "model": self.collection.settings.model,
            "entries": len(self.collection.ids),
            "start": self._start(),
            "photos": [
                {
                    "number": number,
                    "name": photo.name,
                    "width": photo.width,
                    "height": photo.height,
                    "keypoints": keypoints.get(number, 0),
                }
                for number, photo in enumerate(self.collection.photos)
            ],
        }

    def _start(self) -> dict[str, int] | None:
        """The keypoint to show first: one of the first photo that another photo shows too."""
        collection = self.collection
        if len(collection.ids) == 0:
            return None
        number = int(collection.photos_of(collection.ids).min())
        ids = collection.keypoints_of(number)[0][:START_KEYPOINTS]
        others = collection.ids[collection.photos_of(collection.ids) != number]
        best = 0
        if len(others):
            rows = collection.database.reconstruct(ids)
            best = int(collection.database.search(rows, 1, where=others).scores[:, 0].argmax())
        return {"photo": number, "id": int(ids[best])}

    def keypoints(self, number: int) -> dict[str, Any]:
        """Positions, scales and angles of the keypoints of a photo; KeyError for a wrong number."""
        self._check(number)
        ids, frames = self.collection.keypoints_of(number)
        return {
            "id": ids.tolist(),
            "x": frames.x.round(2).tolist(),
            "y": frames.y.round(2).tolist(),
            "scale": frames.sigma.round(2).tolist(),
            "angle": frames.angle.round(4).tolist(),
        }

    def neighbours(self, key: int, k: int, *, others_only: bool) -> dict[str, Any]:
        """The exact nearest keypoints of a keypoint, and how they were found.

        Parameters
        ----------
        key
            Id of the keypoint.
        k
            Number of neighbours.
        others_only
            Leave out the photo of the keypoint.
        """
        collection = self.collection
        asked = np.array([key], np.int64)
        own = int(collection.photos_of(asked)[0])
        row = collection.database.reconstruct(asked)
        ids = collection.ids
        allowed = ids[collection.photos_of(ids) != own] if others_only else ids[ids != key]
        selection = collection.database.select(allowed)
        start = time.perf_counter()
        hits = collection.database.search(row, k, where=selection, threads=1)
        seconds = time.perf_counter() - start
        found = hits.ids[0][hits.ids[0] >= 0]
        scores = hits.scores[0][: len(found)]
        frames = collection.frames_of(found)
        photos = collection.photos_of(found)
        proof = hits.certificate[0]
        return {
            "query": key,
            "photo": own,
            "seconds": seconds,
            "hits": [
                {
                    "id": int(found[i]),
                    "photo": int(photos[i]),
                    "name": collection.photos[photos[i]].name,
                    "x": float(frames.x[i]),
                    "y": float(frames.y[i]),
                    "scale": float(frames.sigma[i]),
                    "score": float(scores[i]),
                }
                for i in range(len(found))
            ],
            "certificate": {
                "exact": proof.exact,
                "entries": proof.entries,
                "total": len(collection.database),
                "cells": proof.cells,
                "scanned": proof.scanned,
                "sifted": proof.sifted,
                "tightened": proof.tightened,
                "settled": proof.settled,
                "kth_score": _finite(proof.kth_score),
                "skipped_bound": _finite(proof.skipped_bound),
                "digest": proof.digest,
            },
            "curve": self._curve(row[0], scores.tolist(), len(allowed)),
        }

    def _curve(self, row: Float32Array, top: list[float], entries: int) -> list[list[float]]:
        """Ranks and scores of all entries: the hits, then a sample of the others."""
        scores = np.sort((self._sample @ row).astype(np.float64))[::-1]
        ranks = (np.arange(len(scores)) + 0.5) * max(entries, 1) / max(len(scores), 1) + 1
        after = ranks > len(top)
        scores, ranks = scores[after], ranks[after]
        if top:
            scores = np.minimum(scores, top[-1])
        if len(scores):
            steps = np.geomspace(1, len(scores), CURVE_POINTS).astype(np.int64) - 1
            steps = np.unique(steps)
            scores, ranks = scores[steps], ranks[steps]
        curve = [[rank + 1.0, score] for rank, score in enumerate(top)]
        return curve + [[float(r), float(s)] for r, s in zip(ranks, scores, strict=True)]

    def photo(self, number: int) -> bytes:
        """A photo as JPEG; KeyError if there is no such photo, ValueError if it has changed."""
        return self._jpeg(number, LONGEST_SIDE)

    def _thumbnail(self, number: int) -> bytes:
        """A photo as a small JPEG, with the errors of :meth:`photo`."""
        return self._jpeg(number, THUMBNAIL_SIDE)

    def _jpeg(self, number: int, longest_side: int) -> bytes:
        self._check_content(number)
        small, _ = reduce_image(read_colour(self.collection.file_of(number)), longest_side)
        return _encode(".jpg", small)

    def patch(self, key: int) -> bytes:
        """The patch of a keypoint as PNG."""
        asked = np.array([key], np.int64)
        number = int(self.collection.photos_of(asked)[0])
        grey, factor = self._grey(number)
        frames = self.collection.frames_of(asked)
        small = Frames(
            (frames.x + 0.5) / factor - 0.5,
            (frames.y + 0.5) / factor - 0.5,
            frames.sigma / factor,
            frames.angle,
        )
        return _encode(".png", cut_patches(grey, small)[0])

    def _read_grey(self, number: int) -> tuple[UInt8Array, float]:
        """The photo as it was described."""
        self._check_content(number)
        grey = read_grey(self.collection.file_of(number))
        return reduce_image(grey, self.collection.settings.longest_side)

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self.collection):
            raise KeyError(f"no photo {number}: the collection has {len(self.collection)}")

    def _check_content(self, number: int) -> None:
        """Raise unless the file of a photo is the one that was described."""
        self._check(number)
        photo = self.collection.photos[number]
        try:
            content = read_photo(self.collection.file_of(number))
        except OSError as error:
            reason = error.strerror or str(error)
            raise ValueError(f"{photo.name} cannot be read: {reason}") from error
        if hashlib.sha256(content).hexdigest() != photo.digest:
            raise ValueError(
                f"{photo.name} has changed since it was described: run `hiernorm describe` again"
            )


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if np.isfinite(value) else None


def _encode(suffix: str, image: UInt8Array) -> bytes:
    cv2 = import_extra("cv2", "vision")
    content: bytes = cv2.imencode(suffix, image)[1].tobytes()
    return content

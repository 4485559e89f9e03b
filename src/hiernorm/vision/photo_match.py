"""Pairing of two photos: describe both, match exactly, keep what agrees with one geometry."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hiernorm.array_types import Float64Array
from hiernorm.matching import Matches, match_descriptors
from hiernorm.vision.features import Description
from hiernorm.vision.frames import Frames
from hiernorm.vision.geometry import Agreement, agree


@dataclass(frozen=True)
class Pairing:
    """Two photos, matched.

    Attributes
    ----------
    matches
        Pairs of keypoints, before geometry.
    agreement
        Which of them agree with one geometry, and with which.
    seconds
        Of matching and of geometry.
    """

    matches: Matches
    agreement: Agreement
    seconds: dict[str, float]


def pair_photos(
    first: Description,
    second: Description,
    *,
    ratio: float | None = None,
    geometry: str = "auto",
    threshold: float = 2.0,
    threads: int | None = None,
) -> Pairing:
    """Match the mutual nearest descriptors of two photos and verify them.

    Parameters
    ----------
    first, second
        As :func:`hiernorm.vision.describe_photo` returns them.
    ratio
        Of the ratio test; none by default: geometry sorts out more, and loses fewer good ones.
    geometry, threshold
        As in :func:`hiernorm.vision.geometry.agree`.
    threads
        Of the matching.
    """
    start = time.perf_counter()
    matches = match_descriptors(first.descriptors, second.descriptors, ratio=ratio, threads=threads)
    matched = time.perf_counter()
    agreement = agree(
        places_of(first.frames)[matches.pairs[:, 0]],
        places_of(second.frames)[matches.pairs[:, 1]],
        geometry=geometry,
        threshold=threshold,
    )
    seconds = {"match": matched - start, "verify": time.perf_counter() - matched}
    return Pairing(matches, agreement, seconds)


def places_of(frames: Frames) -> Float64Array:
    """The centres of frames, ``(n, 2)``."""
    return np.column_stack((frames.x, frames.y))

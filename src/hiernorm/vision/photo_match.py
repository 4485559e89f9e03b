"""Matching of two photos: mutual nearest descriptors, the ratio test, one two-view geometry."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hiernorm._deprecation import renamed_attribute
from hiernorm.matching import RATIO, Matches, match_descriptors
from hiernorm.vision.evidence import Evidence, weigh_evidence
from hiernorm.vision.features import PhotoFeatures, require_same_model
from hiernorm.vision.geometry import TwoViewGeometry, estimate_geometry


@dataclass(frozen=True)
class PhotoMatch:
    """The matches of two photos.

    Attributes
    ----------
    matches
        Pairs of keypoints before the geometric verification.
    geometry
        The two-view geometry, and which of the matches are its inliers.
    seconds
        Times of ``match`` and ``verify``.
    evidence
        Whether more matches agree than chance would give.
    """

    matches: Matches
    geometry: TwoViewGeometry
    seconds: dict[str, float]
    evidence: Evidence
    agreement = renamed_attribute("agreement", "geometry")


def match_photos(
    first: PhotoFeatures,
    second: PhotoFeatures,
    *,
    ratio: float | None = RATIO,
    geometry: str = "auto",
    threshold: float = 2.0,
    threads: int | None = None,
) -> PhotoMatch:
    """Match the mutual nearest descriptors of two photos and verify them.

    Parameters
    ----------
    first, second
        As :func:`hiernorm.vision.describe_photo` returns them, by one model.
    ratio
        Threshold of the ratio test; None for no test.
    geometry, threshold
        As in :func:`hiernorm.vision.geometry.estimate_geometry`.
    threads
        Threads of the matching.
    """
    require_same_model(first.model_digest, second.model_digest)
    start = time.perf_counter()
    matches = match_descriptors(first.descriptors, second.descriptors, ratio=ratio, threads=threads)
    matched = time.perf_counter()
    points = first.frames.centres[matches.pairs[:, 0]], second.frames.centres[matches.pairs[:, 1]]
    estimated = estimate_geometry(*points, geometry=geometry, threshold=threshold)
    sizes = (first.width, first.height), (second.width, second.height)
    evidence = weigh_evidence(estimated, *points, threshold, *sizes)
    seconds = {"match": matched - start, "verify": time.perf_counter() - matched}
    return PhotoMatch(matches, estimated, seconds, evidence)

"""Keypoints of a photo: OpenCV's detectors, in an order that never changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.extras import import_extra
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import check_grey

CONTRAST = 0.02
"""Contrast threshold of SIFT; OpenCV's default, 0.04, finds few keypoints in smooth photos."""


DETECTORS = ("sift", "orb", "gftt")
"""SIFT: blobs; ORB: FAST corners; both with scale and orientation. GFTT: corners without them."""

MAX_KEYPOINTS = 20_000
"""Limit of ORB and GFTT, which need one."""

SIGMAS = {"sift": 1 / 2, "orb": 2 / 24, "gftt": 64 / 24 / 3}
"""A keypoint's sigma as a share of its size: SIFT's own; twice the patch of ORB; one pixel a step,
the size of GFTT's corners being 3."""


def detect(
    image: npt.ArrayLike,
    *,
    limit: int | None = None,
    contrast: float = CONTRAST,
    detector: str = "sift",
) -> Frames:
    """Find keypoints, the strongest first.

    OpenCV's detectors use threads and return keypoints in the order in which these finish. Sorting
    by strength, then by position, makes the result the same on every run.

    Parameters
    ----------
    image
        Grey image, (height, width) uint8.
    limit
        Maximum number of keypoints; the strongest are kept.
    contrast
        Contrast threshold of SIFT: larger values find fewer keypoints.
    detector
        One of DETECTORS.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((64, 64), np.uint8)
    >>> image[29:36, 29:36] = 200
    >>> found = detect(image, limit=1)
    >>> float(found.x[0].round()), float(found.y[0].round())
    (32.0, 32.0)
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if detector not in DETECTORS:
        raise ValueError(f"detector must be one of {', '.join(DETECTORS)}, got {detector!r}")
    found = _make_detector(detector, contrast).detect(check_grey(image), None)
    share = SIGMAS[detector]
    rows = np.array(
        [
            (p.pt[0], p.pt[1], p.size * share, np.deg2rad(max(p.angle, 0.0)), -p.response)
            for p in found
        ]
    ).reshape(-1, 5)
    # lexsort sorts by the last key first: the strongest, then the one of the smallest angle.
    return Frames(*rows[np.lexsort(rows.T)][:limit, :4].T)


def _make_detector(detector: str, contrast: float) -> Any:
    """The detector of OpenCV."""
    cv2 = import_extra("cv2", "vision")
    if detector == "sift":
        return cv2.SIFT_create(contrastThreshold=contrast)
    if detector == "orb":
        return cv2.ORB_create(nfeatures=MAX_KEYPOINTS)
    return cv2.GFTTDetector_create(maxCorners=MAX_KEYPOINTS, qualityLevel=0.005, minDistance=3)

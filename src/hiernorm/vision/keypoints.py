"""Keypoints of a photo: OpenCV's SIFT detector, in an order that never changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.extras import import_extra
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import check_grey

CONTRAST = 0.02
"""Threshold of the detector; OpenCV's own default, 0.04, finds too little in smooth photos."""


def detect(image: npt.ArrayLike, *, limit: int | None = None, contrast: float = CONTRAST) -> Frames:
    """Find keypoints, the strongest first.

    The detector works in threads and reports in the order in which they finish; sorting by
    strength, then by place, makes the result the same on every run.

    Parameters
    ----------
    image
        Grey image, (height, width) uint8.
    limit
        Keep the strongest only.
    contrast
        Weaker extrema are left out: larger values find fewer keypoints.

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
    cv2 = import_extra("cv2", "vision")
    found = cv2.SIFT_create(contrastThreshold=contrast).detect(check_grey(image), None)
    rows = np.array(
        [(p.pt[0], p.pt[1], p.size / 2, np.deg2rad(p.angle), -p.response) for p in found]
    ).reshape(-1, 5)
    # lexsort sorts by the last key first: the strongest, then the one of the smallest angle.
    return Frames(*rows[np.lexsort(rows.T)][:limit, :4].T)

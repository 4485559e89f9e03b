"""SIFT and RootSIFT on whole patches, the hand-crafted descriptors to compare with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array
from hiernorm.extras import import_extra

WINDOW = 48
"""Pixels that the descriptor covers of a patch's 64 by default."""

CELLS_PER_SIZE = 6
"""OpenCV's descriptor covers six times the size of its keypoint, each way."""


def describe_sift(
    patches: npt.NDArray[np.uint8], window: int = WINDOW, root: bool = False
) -> Float32Array:
    """Describe patches by OpenCV's SIFT, upright and at the centre.

    Parameters
    ----------
    patches
        uint8 ``(n, 64, 64)``.
    window
        Pixels that the descriptor covers, each way; results depend on it.
    root
        Take square roots of the L1-normalised histograms (RootSIFT).

    Returns
    -------
    float32 ``(n, 128)``, of unit length; a flat patch gives zeros.

    Examples
    --------
    >>> describe_sift(np.zeros((2, 64, 64), np.uint8)).shape
    (2, 128)
    """
    cv2 = import_extra("cv2", extra="vision")
    sift = cv2.SIFT_create()
    rows = np.zeros((len(patches), 128), np.float32)
    for i, patch in enumerate(patches):
        centre = (patch.shape[0] - 1) / 2
        keypoint = cv2.KeyPoint(centre, centre, window / CELLS_PER_SIZE, 0)
        _, found = sift.compute(np.ascontiguousarray(patch), [keypoint])
        if found is not None:
            rows[i] = found[0]
    if root:
        rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units: Float32Array = (rows / np.maximum(norms, 1e-12)).astype(np.float32)
    return units

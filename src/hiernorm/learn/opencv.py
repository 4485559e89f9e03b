"""Descriptors of OpenCV on whole patches: VGG, BoostDesc, BEBLID, TEBLID and DAISY."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array
from hiernorm.extras import import_extra

BORDER = 32
"""Pixels by which a patch is continued on each side, since OpenCV drops keypoints near an edge."""

WINDOWS = {"vgg": 48, "boostdesc": 48, "beblid": 48, "teblid": 48, "daisy": 48}
"""Pixels of a patch's 64 that each descriptor covers by default."""


def describe_opencv(
    patches: npt.NDArray[np.uint8], name: str, window: int | None = None
) -> Float32Array:
    """Describe patches by a descriptor of OpenCV's contributed modules, upright, at the centre.

    Parameters
    ----------
    patches
        uint8 ``(n, 64, 64)``.
    name
        One of :data:`WINDOWS`.
    window
        Pixels that the descriptor covers, each way.

    Returns
    -------
    float32 ``(n, d)``, of unit length. Bits are mapped to -1 and 1 before: the Euclidean distance
    then orders pairs as the Hamming distance does.
    """
    make, size = _recipe(name, window or WINDOWS[name])
    extractor = make()
    cv2 = import_extra("cv2", extra="vision")
    rows = []
    for patch in patches:
        wide = cv2.copyMakeBorder(patch, BORDER, BORDER, BORDER, BORDER, cv2.BORDER_REPLICATE)
        centre = (wide.shape[0] - 1) / 2
        _, found = extractor.compute(wide, [cv2.KeyPoint(centre, centre, size, 0)])
        rows.append(found[0])
    stacked = np.stack(rows)
    if stacked.dtype == np.uint8:
        stacked = 2.0 * np.unpackbits(stacked, axis=1) - 1
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    units: Float32Array = (stacked / np.maximum(norms, 1e-12)).astype(np.float32)
    return units


def _recipe(name: str, window: int) -> tuple[Callable[[], Any], float]:
    """What makes the extractor, and the size of a keypoint for the window."""
    contributed = getattr(import_extra("cv2", extra="vision"), "xfeatures2d", None)
    if contributed is None or not hasattr(contributed, "VGG_create"):
        raise ModuleNotFoundError(
            f"{name} needs OpenCV's contributed modules: pip install 'hiernorm[vision]'"
        )
    if name == "daisy":
        # The outermost of DAISY's circles is as wide again as its samples.
        return lambda: contributed.DAISY_create(radius=window / 2 * 0.75), 1.0
    makers = {
        "vgg": lambda: contributed.VGG_create(scale_factor=1.0),
        "boostdesc": lambda: contributed.BoostDesc_create(scale_factor=1.0),
        "beblid": lambda: contributed.BEBLID_create(1.0),
        "teblid": lambda: contributed.TEBLID_create(1.0),
    }
    return makers[name], float(window)

"""Changes of patches in training: the noise of a detector, and of light and camera."""

from __future__ import annotations

import numpy as np

from hiernorm.array_types import UInt8Array
from hiernorm.extras import import_extra

SHIFT, SIZE, TURN = 1.5, 1.15, np.pi / 18
"""Largest noise of a frame: pixels of 64, factor of the scale, radians."""

GAMMA, BLUR, NOISE = 1.6, 1.2, 6.0
"""Largest changes: exponent as a factor, sigma of the blur in pixels, of the noise in levels."""


def disturb_frames(patches: UInt8Array, rng: np.random.Generator) -> UInt8Array:
    """Shift, scale and turn each patch ``(n, 64, 64)`` a little, as a detector would.

    Examples
    --------
    >>> import numpy as np
    >>> disturb_frames(np.zeros((2, 64, 64), np.uint8), np.random.default_rng(0)).shape
    (2, 64, 64)
    """
    cv2 = import_extra("cv2", extra="vision")
    side = patches.shape[1]
    middle = (side - 1) / 2
    n = len(patches)
    factors = SIZE ** rng.uniform(-1, 1, n)
    angles = TURN * rng.uniform(-1, 1, n)
    shifts = SHIFT * rng.uniform(-1, 1, (n, 2))
    changed = np.empty_like(patches)
    for i, patch in enumerate(patches):
        matrix = cv2.getRotationMatrix2D((middle, middle), float(np.rad2deg(angles[i])), factors[i])
        matrix[:, 2] += shifts[i]
        cv2.warpAffine(
            patch, matrix, (side, side), changed[i], cv2.INTER_LINEAR, cv2.BORDER_REPLICATE
        )
    return changed


def change_light(patches: UInt8Array, rng: np.random.Generator) -> UInt8Array:
    """Change gamma, blur and add noise to each patch ``(n, 64, 64)``.

    Gain and offset are left alone: networks take mean and deviation out.

    Examples
    --------
    >>> import numpy as np
    >>> change_light(np.zeros((2, 64, 64), np.uint8), np.random.default_rng(0)).dtype
    dtype('uint8')
    """
    cv2 = import_extra("cv2", extra="vision")
    n = len(patches)
    gammas = GAMMA ** rng.uniform(-1, 1, n)
    levels = 255 * (np.arange(256, dtype=np.float32) / 255) ** gammas[:, None].astype(np.float32)
    lit = np.take_along_axis(levels, patches.reshape(n, -1), axis=1).reshape(patches.shape)
    blurs = BLUR * rng.uniform(-1, 1, n)  # half of the patches stay sharp
    for i in np.flatnonzero(blurs > 0.3):
        lit[i] = cv2.GaussianBlur(lit[i], (0, 0), blurs[i])
    noise = (NOISE * rng.uniform(0, 1, n)).astype(np.float32)
    lit += noise[:, None, None] * rng.standard_normal(lit.shape, np.float32)
    changed: UInt8Array = np.clip(np.rint(lit), 0, 255).astype(np.uint8)
    return changed

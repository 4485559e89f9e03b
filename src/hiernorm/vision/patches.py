"""Patches: the oriented, antialiased surroundings of keypoints, as in the UBC data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float64Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.frames import Frames
from hiernorm.vision.photos import check_grey

SIZE = 64
"""Pixels along the side of a patch."""

WINDOW = 24.0
"""Width of a patch in sigmas of its keypoint: twice the window of SIFT."""

_OVERSAMPLING = 2


def cut_patches(image: npt.ArrayLike, frames: Frames, *, window: float = WINDOW) -> UInt8Array:
    """Cut a patch around every keypoint, turned upright and scaled to 64 x 64.

    Pixel (u, v) of a patch shows the image at ``centre + step * R(angle) @ (u - 31.5, v - 31.5)``
    with ``step = window * sigma / 64``. Where a step is wider than a pixel, the image is smoothed
    before it is sampled, so that nothing aliases. Beyond its edge the image is continued by its
    outermost pixels.

    Parameters
    ----------
    image
        Grey image, (height, width) uint8.
    frames
        n keypoints.
    window
        Width of a patch in sigmas.

    Returns
    -------
    (n, 64, 64) uint8

    Examples
    --------
    >>> import numpy as np
    >>> ramp = np.tile(np.arange(200, dtype=np.uint8), (200, 1))
    >>> patch = cut_patches(ramp, Frames([100.0], [100.0], [64 / 24], [0.0]))[0]
    >>> patch.shape, patch[0, :3].tolist()  # one pixel a step; 100 - 31.5 is halfway
    ((64, 64), [69, 70, 71])
    """
    if not (np.isfinite(window) and window > 0):
        raise ValueError(f"window must be above 0, got {window}")
    cv2 = import_extra("cv2", "vision")
    pyramid = [check_grey(image)]
    patches = np.empty((len(frames), SIZE, SIZE), np.uint8)
    side = SIZE * _OVERSAMPLING
    for row, level, matrix in _sampling_plan(frames, window):
        while len(pyramid) <= level:
            pyramid.append(cv2.pyrDown(pyramid[-1]))
        fine = cv2.warpAffine(
            pyramid[level],
            matrix,
            (side, side),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        patches[row] = cv2.resize(fine, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
    return patches


def patch_corners(frames: Frames, *, window: float = WINDOW) -> Float64Array:
    """The corners of each patch in the image, (n, 4, 2): x and y, round the square."""
    half = window * frames.sigma / 2
    cosine, sine = half * np.cos(frames.angle), half * np.sin(frames.angle)
    right, down = np.stack((cosine, sine), -1), np.stack((-sine, cosine), -1)
    centre = np.stack((frames.x, frames.y), -1)
    around = (-right - down, right - down, right + down, down - right)
    return np.stack([centre + corner for corner in around], axis=1)


def _sampling_plan(frames: Frames, window: float) -> list[tuple[int, int, Float64Array]]:
    """Per patch: its row, the octave to sample, and the affine map from samples to that octave.

    The octave is the one at which a patch's step is 1 to 2 pixels, and so a sample's step half of
    that: dense enough for bilinear interpolation, and averaging 2 x 2 samples does the rest.
    """
    step = window * frames.sigma / SIZE
    octave = np.maximum(np.floor(np.log2(step)), 0).astype(int)
    fine_step = step / (_OVERSAMPLING * 2.0**octave)
    middle = (SIZE * _OVERSAMPLING - 1) / 2
    plan = []
    for row in range(len(frames)):
        # An octave's pixel i is the full image's pixel 2^octave * i.
        centre = np.array([frames.x[row], frames.y[row]]) / 2.0 ** octave[row]
        cosine, sine = np.cos(frames.angle[row]), np.sin(frames.angle[row])
        turn = fine_step[row] * np.array([[cosine, -sine], [sine, cosine]])
        shift = centre - turn @ np.array([middle, middle])
        plan.append((row, int(octave[row]), np.column_stack((turn, shift))))
    return plan

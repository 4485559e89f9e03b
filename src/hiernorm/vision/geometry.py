"""Geometry of two photos: which matches agree with one homography or one epipolar geometry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import BoolArray, Float64Array
from hiernorm.extras import import_extra

GEOMETRIES = ("auto", "homography", "fundamental")
LEAST = {"homography": 4, "fundamental": 8}
"""Matches without which nothing is estimated."""
PLANAR = 0.8
"""With "auto", a homography is chosen if it explains this share of what epipolar lines do: lines
constrain less, so chance agrees with them more often."""
CONFIDENCE = 0.9999
ITERATIONS = 10_000


@dataclass(frozen=True)
class Agreement:
    """What two photos agree on.

    Attributes
    ----------
    geometry
        ``"homography"`` or ``"fundamental"``.
    matrix : (3, 3) float64 or None
        From the first photo to the second: places to places, or places to epipolar lines; None if
        there is none.
    inliers : (n,) bool
        Which of the matches agree with it.
    """

    geometry: str
    matrix: Float64Array | None
    inliers: BoolArray

    @property
    def count(self) -> int:
        """How many matches agree."""
        return int(self.inliers.sum())


def agree(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    geometry: str = "auto",
    threshold: float = 2.0,
) -> Agreement:
    """Find what most matches agree on, by OpenCV's MAGSAC; the same on every run.

    Parameters
    ----------
    first, second
        ``(n, 2)`` places of the matches in both photos, in pixels.
    geometry
        ``"homography"`` for planes and turning cameras, ``"fundamental"`` for anything rigid, or
        ``"auto"``: the homography where it explains nearly as much.
    threshold
        How many pixels a match may be off.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.random.default_rng(0).uniform(0, 500, (50, 2))
    >>> moved = places @ [[0.8, 0.6], [-0.6, 0.8]] + 30
    >>> moved[:10] += 100 * np.random.default_rng(1).uniform(1, 2, (10, 2))
    >>> found = agree(places, moved)
    >>> found.geometry, found.count
    ('homography', 40)
    """
    if geometry not in GEOMETRIES:
        raise ValueError(f"geometry must be one of {', '.join(GEOMETRIES)}, got {geometry!r}")
    if not threshold > 0:
        raise ValueError(f"threshold must be above 0, got {threshold}")
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.ndim != 2 or a.shape[1] != 2 or a.shape != b.shape:
        raise ValueError(f"expected two arrays of places (n, 2), got {a.shape} and {b.shape}")
    if geometry != "auto":
        return _estimate(geometry, a, b, threshold)
    epipolar = _estimate("fundamental", a, b, threshold)
    planar = _estimate("homography", a, b, threshold)
    return planar if planar.count >= PLANAR * epipolar.count else epipolar


def _estimate(geometry: str, a: Float64Array, b: Float64Array, threshold: float) -> Agreement:
    nothing = Agreement(geometry, None, np.zeros(len(a), np.bool_))
    if len(a) < LEAST[geometry]:
        return nothing
    cv2 = import_extra("cv2", "vision")
    cv2.setRNGSeed(0)
    try:
        if geometry == "homography":
            matrix, mask = cv2.findHomography(
                a, b, cv2.USAC_MAGSAC, threshold, None, ITERATIONS, CONFIDENCE
            )
        else:
            matrix, mask = cv2.findFundamentalMat(
                a, b, cv2.USAC_MAGSAC, threshold, CONFIDENCE, ITERATIONS
            )
    except cv2.error:  # of places that determine nothing, such as all on one line
        return nothing
    if matrix is None or mask is None or matrix.shape != (3, 3):
        return nothing
    return Agreement(geometry, matrix, mask.ravel().astype(np.bool_))


def epipolar_distances(matrix: npt.ArrayLike, a: Float64Array, b: Float64Array) -> Float64Array:
    """Distance in pixels of places ``(n, 2)`` to each other's epipolar lines; the larger one.

    Examples
    --------
    >>> sideways = [[0, 0, 0], [0, 0, -1], [0, 1, 0]]  # a camera that moved along its x axis
    >>> epipolar_distances(sideways, np.array([[10.0, 5.0]]), np.array([[40.0, 7.0]])).tolist()
    [2.0]
    """
    f = np.asarray(matrix, np.float64)
    first, second = (np.column_stack((places, np.ones(len(places)))) for places in (a, b))
    lines, back = first @ f.T, second @ f
    off = np.abs(np.einsum("ij,ij->i", second, lines))
    with np.errstate(divide="ignore", invalid="ignore"):
        shortest = np.minimum(np.hypot(*lines.T[:2]), np.hypot(*back.T[:2]))
        distances: Float64Array = np.where(shortest > 0, off / shortest, np.inf)
    return distances

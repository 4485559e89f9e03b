"""Two-view geometry: the homography or fundamental matrix of two photos, and its inliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm._deprecation import renamed_attribute, renamed_names
from hiernorm.array_types import BoolArray, Float64Array
from hiernorm.extras import import_extra

GEOMETRIES = ("auto", "homography", "fundamental")
LEAST = {"homography": 4, "fundamental": 8}
"""Minimum number of matches of an estimate."""
PLANAR = 0.8
"""With "auto", a homography is chosen if it has at least this share of the inliers of the
fundamental matrix. Epipolar lines constrain less, so more wrong matches agree with them."""
CONFIDENCE = 0.9999
ITERATIONS = 10_000


@dataclass(frozen=True)
class TwoViewGeometry:
    """A homography or fundamental matrix of two photos.

    Attributes
    ----------
    kind
        ``"homography"`` or ``"fundamental"``.
    matrix : (3, 3) float64 or None
        From the first photo to the second: points to points, or points to epipolar lines. None if
        nothing could be estimated.
    inliers : (n,) bool
        Which of the matches agree with it.
    """

    kind: str
    matrix: Float64Array | None
    inliers: BoolArray
    geometry = renamed_attribute("geometry", "kind")

    @property
    def count(self) -> int:
        """The number of inliers."""
        return int(self.inliers.sum())


def estimate_geometry(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    geometry: str = "auto",
    threshold: float = 2.0,
) -> TwoViewGeometry:
    """Estimate the two-view geometry of matches by OpenCV's MAGSAC; the same on every run.

    Parameters
    ----------
    first, second
        ``(n, 2)`` points of the matches in both photos, in pixels.
    geometry
        ``"homography"`` for planes and rotating cameras, ``"fundamental"`` for any rigid scene, or
        ``"auto"``: the homography where it has nearly as many inliers.
    threshold
        Maximum error of an inlier in pixels.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).uniform(0, 500, (50, 2))
    >>> moved = points @ [[0.8, 0.6], [-0.6, 0.8]] + 30
    >>> moved[:10] += 100 * np.random.default_rng(1).uniform(1, 2, (10, 2))
    >>> found = estimate_geometry(points, moved)
    >>> found.kind, found.count
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


def _estimate(geometry: str, a: Float64Array, b: Float64Array, threshold: float) -> TwoViewGeometry:
    nothing = TwoViewGeometry(geometry, None, np.zeros(len(a), np.bool_))
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
    except cv2.error:  # points that determine nothing, such as all on one line
        return nothing
    if matrix is None or mask is None or matrix.shape != (3, 3):
        return nothing
    return TwoViewGeometry(geometry, matrix, mask.ravel().astype(np.bool_))


def epipolar_distances(matrix: npt.ArrayLike, a: Float64Array, b: Float64Array) -> Float64Array:
    """Distance in pixels of points ``(n, 2)`` to each other's epipolar lines; the larger one.

    Examples
    --------
    >>> sideways = [[0, 0, 0], [0, 0, -1], [0, 1, 0]]  # a camera that moved along its x axis
    >>> epipolar_distances(sideways, np.array([[10.0, 5.0]]), np.array([[40.0, 7.0]])).tolist()
    [2.0]
    """
    f = np.asarray(matrix, np.float64)
    first, second = (np.column_stack((points, np.ones(len(points)))) for points in (a, b))
    lines, back = first @ f.T, second @ f
    off = np.abs(np.einsum("ij,ij->i", second, lines))
    with np.errstate(divide="ignore", invalid="ignore"):
        shortest = np.minimum(np.hypot(*lines.T[:2]), np.hypot(*back.T[:2]))
        distances: Float64Array = np.where(shortest > 0, off / shortest, np.inf)
    return distances


__getattr__ = renamed_names(
    __name__,
    {
        "Agreement": "hiernorm.vision.geometry:TwoViewGeometry",
        "agree": "hiernorm.vision.geometry:estimate_geometry",
    },
)

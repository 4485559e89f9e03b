"""Evidence of a match: how many inliers chance would give among that many matches.

An a-contrario rule, after Moisan and Stival (IJCV 2004). If the matches were random, each would
agree with a given geometry with probability ``p``: the share of the photo that lies within the
threshold of a point (homography) or of an epipolar line (fundamental matrix). Every minimal sample
of ``s`` matches proposes geometries, so the expected number of geometries that ``k`` of ``n``
random matches agree with is at most::

    false_alarms(n, k) = solutions * (n - s) * C(n, k) * C(k, s) * p ** (k - s)

Two photos match if that is at most :data:`FALSE_ALARMS`. Matches between the same two places count
once: a detector puts several keypoints of different orientation at one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, lgamma, log, pi

import numpy as np

from hiernorm.array_types import Float64Array
from hiernorm.vision.geometry import TwoViewGeometry

FALSE_ALARMS = 1e-3
"""Expected number of false alarms per pair of photos that is accepted."""
SAMPLE = {"homography": 4, "fundamental": 7}
"""Matches that determine the geometry."""
SOLUTIONS = {"homography": 1, "fundamental": 3}
"""Maximum number of geometries that one sample determines."""


@dataclass(frozen=True)
class Evidence:
    """Whether two photos match.

    Attributes
    ----------
    matches, inliers
        Number of matches, and of those that agree with the geometry, between different places.
    needed
        The least number of inliers that chance does not explain; None if there are too few matches.
    """

    matches: int
    inliers: int
    needed: int | None

    @property
    def convincing(self) -> bool:
        """Whether more matches agree than by chance."""
        return self.needed is not None and self.inliers >= self.needed

    @property
    def reason(self) -> str:
        """Why the photos match, or which part of the rule failed.

        Examples
        --------
        >>> Evidence(matches=90, inliers=31, needed=19).reason
        '31 of 90 distinct matches agree, 19 are enough'
        >>> Evidence(matches=90, inliers=12, needed=19).reason
        '12 of 90 distinct matches agree, at least 19 are needed'
        >>> Evidence(matches=8, inliers=8, needed=None).reason
        '8 distinct matches are too few to decide'
        """
        if self.needed is None:
            return f"{self.matches} distinct matches are too few to decide"
        agree = f"{self.inliers} of {self.matches} distinct matches agree"
        if self.convincing:
            return f"{agree}, {self.needed} are enough"
        return f"{agree}, at least {self.needed} are needed"


def weigh_evidence(
    geometry: TwoViewGeometry,
    first: Float64Array,
    second: Float64Array,
    threshold: float,
    *sizes: tuple[int, int],
) -> Evidence:
    """The evidence of matches for their geometry.

    Parameters
    ----------
    geometry
        As :func:`hiernorm.vision.estimate_geometry` returns it.
    first, second
        ``(n, 2)`` points of the matches in both photos, in pixels.
    threshold, sizes
        As in :func:`chance_of_agreement`.
    """
    places = np.column_stack((first, second))
    matches = len(np.unique(places, axis=0))
    inliers = len(np.unique(places[geometry.inliers], axis=0))
    chance = chance_of_agreement(geometry.kind, threshold, *sizes)
    return Evidence(matches, inliers, least_inliers(geometry.kind, matches, chance))


def chance_of_agreement(kind: str, threshold: float, *sizes: tuple[int, int]) -> float:
    """The probability that a random match agrees with a given geometry; at most 1.

    Parameters
    ----------
    kind
        ``"homography"`` or ``"fundamental"``.
    threshold
        Maximum error of an inlier in pixels.
    sizes
        Width and height of the photos; the one where chance is greatest counts.

    Examples
    --------
    >>> round(chance_of_agreement("fundamental", 2.0, (1600, 1200)), 5)
    0.00417
    """
    if kind == "homography":
        shares = [pi * threshold**2 / (width * height) for width, height in sizes]
    else:
        # No line in a photo is longer than its diagonal.
        shares = [
            2 * threshold * hypot(width, height) / (width * height) for width, height in sizes
        ]
    return min(1.0, max(shares))


def log_false_alarms(kind: str, matches: int, inliers: int, chance: float) -> float:
    """Natural logarithm of the expected number of geometries that so many random matches fit.

    Parameters
    ----------
    kind, chance
        As in :func:`chance_of_agreement`, and what it returns.
    matches, inliers
        Number of matches, and of those that agree; more than a minimal sample.
    """
    sample = SAMPLE[kind]
    return (
        log(SOLUTIONS[kind] * (matches - sample))
        + _log_choose(matches, inliers)
        + _log_choose(inliers, sample)
        + (inliers - sample) * log(chance)
    )


def least_inliers(kind: str, matches: int, chance: float) -> int | None:
    """The least number of inliers that chance does not explain; None if there is none.

    Examples
    --------
    >>> least_inliers("fundamental", 100, 0.004), least_inliers("fundamental", 1000, 0.004)
    (20, 47)
    >>> least_inliers("fundamental", 8, 0.004) is None
    True
    """
    # The logarithm is concave in the inliers and above 0 at the first, so it falls but once.
    for inliers in range(SAMPLE[kind] + 1, matches + 1):
        if log_false_alarms(kind, matches, inliers, chance) <= log(FALSE_ALARMS):
            return inliers
    return None


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

"""Options of matching, with the names and defaults of COLMAP."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

from hiernorm.byte_matching import MAX_DISTANCE, MAX_RATIO


class DescriptorType(IntEnum):
    """COLMAP's ``FeatureExtractorType``, as its databases number it."""

    UNDEFINED = -1
    SIFT = 0
    ALIKED_N16ROT = 1
    ALIKED_N32 = 2
    LOMA_B = 3
    LOMA_B128 = 4


@dataclass(frozen=True)
class MatchingOptions:
    """When two descriptors match.

    Attributes
    ----------
    max_ratio
        The angle of the best match must be below this share of the angle of the second best.
    max_distance
        Largest angle of a match in radians.
    cross_check
        Whether a match must hold in both directions.
    min_num_inliers
        A pair with fewer matches gets none, as in COLMAP (``TwoViewGeometry.min_num_inliers``).
    """

    max_ratio: float = MAX_RATIO
    max_distance: float = MAX_DISTANCE
    cross_check: bool = True
    min_num_inliers: int = 15

    def __post_init__(self) -> None:
        for name in ("max_ratio", "max_distance"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.min_num_inliers < 0:
            raise ValueError(f"min_num_inliers must be at least 0, got {self.min_num_inliers}")

    @classmethod
    def for_type(
        cls,
        kind: DescriptorType,
        max_ratio: float | None = None,
        max_distance: float | None = None,
        cross_check: bool = True,
    ) -> MatchingOptions:
        """The defaults for a type of descriptors, except what is given.

        COLMAP's for SIFT (ratio 0.8, 0.7 radians) and for learned descriptors (cosine at least
        0.85, ratio 1). For types that COLMAP does not name, such as the models of this package,
        ratio 0.9 and any angle below a right one.

        Examples
        --------
        >>> MatchingOptions.for_type(DescriptorType.ALIKED_N32).max_ratio
        1.0
        """
        if kind == DescriptorType.SIFT:
            options = cls()
        elif kind == DescriptorType.UNDEFINED:
            options = cls(max_ratio=0.9, max_distance=math.pi / 2)
        else:
            options = cls(max_ratio=1.0, max_distance=math.acos(0.85))
        options = replace(options, cross_check=cross_check)
        if max_ratio is not None:
            options = replace(options, max_ratio=max_ratio)
        if max_distance is not None:
            options = replace(options, max_distance=max_distance)
        return options

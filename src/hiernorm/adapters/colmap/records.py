"""Records of COLMAP's database, and its ids of pairs."""

from __future__ import annotations

from dataclasses import dataclass

from hiernorm.array_types import Float64Array

MAX_IMAGES = 2147483647
"""COLMAP's limit of image ids, and the factor in the id of a pair."""
Pair = tuple[int, int]
"""Ids of two images, the smaller one first."""


@dataclass(frozen=True)
class StoredImage:
    """An image of the database, with its number of descriptors; None if it has none stored."""

    image_id: int
    name: str
    descriptors: int | None


@dataclass(frozen=True)
class StoredCamera:
    """A camera of the database; ``model`` is COLMAP's number of it."""

    camera_id: int
    model: int
    width: int
    height: int
    params: Float64Array
    has_prior_focal_length: bool


def pair_id(pair: Pair) -> int:
    """COLMAP's id of a pair; ValueError unless the smaller image id comes first.

    Examples
    --------
    >>> pair_id((1, 2))
    2147483649
    """
    if not 0 <= pair[0] < pair[1]:
        raise ValueError(f"expected the smaller image id first, got {pair}")
    return MAX_IMAGES * pair[0] + pair[1]

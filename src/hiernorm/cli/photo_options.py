"""Options that commands on photos share: how photos are described and matched."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from hiernorm.cli.help import option
from hiernorm.cli.options import KEYPOINTS, LONGEST_SIDE, MODEL
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import FeatureSettings
from hiernorm.vision.geometry import GEOMETRIES
from hiernorm.vision.keypoints import DETECTORS

R = TypeVar("R")

DETECTOR = option(
    "--detector",
    type=click.Choice(DETECTORS),
    default="sift",
    help="Keypoint detector.",
)
GEOMETRY = option(
    "--geometry",
    type=click.Choice(GEOMETRIES),
    default="auto",
    help="Geometry that the matches must agree with.",
)


def sizes_of(collection: Collection) -> str:
    """How many photos and keypoints a collection has, in words."""
    counts = {"photo": len(collection), "keypoint": len(collection.ids)}
    return ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for word, n in counts.items())


def feature_options(command: Callable[..., R]) -> Callable[..., R]:
    """``--model``, ``--detector``, ``--keypoints``, ``--longest-side``: the command's settings.

    The command gets them as ``settings``, a FeatureSettings. The decorator stands above ``needs``.
    """

    @wraps(command)
    def with_settings(
        model: str, detector: str, keypoints: int, longest_side: int, **others: Any
    ) -> R:
        settings = FeatureSettings(model, detector, keypoints, longest_side)
        return command(settings=settings, **others)

    return MODEL(DETECTOR(KEYPOINTS(LONGEST_SIDE(with_settings))))

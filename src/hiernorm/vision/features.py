"""Features of a photo: its keypoints and their descriptors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hiernorm._deprecation import renamed_parameter
from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.models import Model, load_model
from hiernorm.vision.frames import Frames
from hiernorm.vision.keypoints import DETECTORS, detect
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.photos import read_grey


@dataclass(frozen=True)
class FeatureSettings:
    """How the features of photos are extracted.

    Attributes
    ----------
    model
        A model that ships with the package, or the path of an ``.onnx`` file.
    detector
        One of :data:`hiernorm.vision.keypoints.DETECTORS`.
    limit
        Maximum number of keypoints per photo; the strongest are kept.
    longest_side
        Larger photos are reduced to this many pixels first; positions refer to the full photo.
    """

    model: str = "hn16"
    detector: str = "sift"
    limit: int = 2000
    longest_side: int = 1600

    def __post_init__(self) -> None:
        if self.detector not in DETECTORS:
            raise ValueError(
                f"detector must be one of {', '.join(DETECTORS)}, got {self.detector!r}"
            )
        for name in ("limit", "longest_side"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def differences(self, other: FeatureSettings) -> tuple[str, str]:
        """What differs, as it is here and as it is there.

        Examples
        --------
        >>> FeatureSettings().differences(FeatureSettings(model="hn8", limit=500))
        ('model hn16, limit 2000', 'model hn8, limit 500')
        """
        here, there = asdict(self), asdict(other)
        names = [name for name in here if here[name] != there[name]]
        was, now = (", ".join(f"{n} {values[n]}" for n in names) for values in (here, there))
        return was, now


@dataclass(frozen=True)
class PhotoFeatures:
    """The size of a photo in pixels, its n keypoints and their descriptors ``(n, d)``.

    ``model_digest`` names the model that described it; empty if that is not known.
    """

    width: int
    height: int
    frames: Frames
    descriptors: Float32Array
    model_digest: str = ""


def require_same_model(first: str, second: str) -> None:
    """ValueError if two digests of models differ; an empty one is not known and may be any.

    Examples
    --------
    >>> require_same_model("aa", "aa")
    >>> require_same_model("aa" * 8, "bb" * 8)
    Traceback (most recent call last):
    ValueError: described by model aaaaaaaaaaaa, compared with model bbbbbbbbbbbb: use one model
    """
    if first and second and first != second:
        raise ValueError(
            f"described by model {first[:12]}, compared with model {second[:12]}: use one model"
        )


@renamed_parameter("recipe", "settings")
def describe_photo(
    file: Path | str, settings: FeatureSettings, model: Model | None = None
) -> PhotoFeatures:
    """Find the keypoints of a photo and describe their patches.

    Parameters
    ----------
    file
        The photo.
    settings
        How the features are extracted.
    model
        The loaded model of the settings, so that many photos need not load it again.
    """
    return describe_grey(read_grey(Path(file)), settings, model or load_model(settings.model))


def describe_grey(image: UInt8Array, settings: FeatureSettings, model: Model) -> PhotoFeatures:
    """Describe a grey image, (height, width) uint8, by a loaded model."""
    height, width = image.shape
    small, factor = reduce_image(image, settings.longest_side)
    frames = detect(small, limit=settings.limit, detector=settings.detector)
    descriptors = model.describe(cut_patches(small, frames))
    return PhotoFeatures(width, height, _enlarged(frames, factor), descriptors, model.digest)


def describe_photo_by_sift(file: Path | str, *, limit: int, longest_side: int) -> PhotoFeatures:
    """Find the keypoints of a photo and describe them by OpenCV's SIFT, as unit vectors.

    Parameters
    ----------
    file
        The photo.
    limit, longest_side
        As in :class:`FeatureSettings`.
    """
    cv2 = import_extra("cv2", "vision")
    image = read_grey(Path(file))
    height, width = image.shape
    small, factor = reduce_image(image, longest_side)
    frames = detect(small, limit=limit)
    keypoints = [
        cv2.KeyPoint(float(x), float(y), float(2 * sigma), float(np.rad2deg(angle) % 360))
        for x, y, sigma, angle in zip(frames.x, frames.y, frames.sigma, frames.angle, strict=True)
    ]
    rows = np.zeros((0, 128), np.float32)
    if keypoints:
        _, rows = cv2.SIFT_create().compute(small, keypoints)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, np.newaxis]
    units = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return PhotoFeatures(width, height, _enlarged(frames, factor), units)


def _enlarged(frames: Frames, factor: float) -> Frames:
    """Frames of the full photo, from those of one that was reduced."""
    # The centre of the top left pixel is (0, 0): a reduction moves it by half a pixel.
    x, y = ((axis + 0.5) * factor - 0.5 for axis in (frames.x, frames.y))
    return Frames(x, y, frames.sigma * factor, frames.angle)


def reduce_image(image: UInt8Array, longest_side: int) -> tuple[UInt8Array, float]:
    """Reduce an image to ``longest_side``; returns it and the factor back to the full size.

    The image is ``(height, width)`` or ``(height, width, channels)``.

    Examples
    --------
    >>> import numpy as np
    >>> small, factor = reduce_image(np.zeros((300, 400), np.uint8), 200)
    >>> small.shape, factor
    ((150, 200), 2.0)
    >>> reduce_image(np.zeros((300, 400, 3), np.uint8), 200)[0].shape
    (150, 200, 3)
    """
    height, width = image.shape[:2]
    longest = max(height, width)
    if longest <= longest_side:
        return image, 1.0
    factor = longest / longest_side
    size = [max(1, round(side / factor)) for side in (width, height)]
    cv2 = import_extra("cv2", "vision")
    small: UInt8Array = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return small, factor

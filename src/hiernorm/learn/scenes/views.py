"""Views of a photo: random homographies and light, and where keypoints come to lie in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm.array_types import BoolArray, Float64Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.vision.frames import Frames

_OVERSAMPLING = 2

BEST_JPEG = 95
"""Quality above which compression changes next to nothing."""


@dataclass(frozen=True)
class Variation:
    """How much views and frames vary; each value is the largest change, drawn uniformly.

    Attributes
    ----------
    rotation : float
        Turn of the view, radians.
    scale : float
        Change of size, as a factor.
    tilt : float
        Stretch along one direction, as a factor: 1/cos of the angle from which a plane is seen.
    perspective : float
        Change of size from the middle of the photo to its edge, as a share.
    gain, bias, gamma, shading : float
        Factor of the grey values, offset in grey levels, exponent as a factor, and change of
        brightness from the middle of the view to its edge, as a share.
    blur, noise : float
        Sigma of the blur in pixels; sigma of the noise in grey levels.
    jpeg : int
        Lowest quality of JPEG compression, drawn up to 95; 0 means none.
    shift, size, turn : float
        Noise of the detector: position in sigmas of the keypoint, scale as a factor, orientation
        in radians.
    """

    rotation: float = np.pi / 6
    scale: float = 1.4
    tilt: float = 1.8
    perspective: float = 0.15
    gain: float = 1.3
    bias: float = 20.0
    gamma: float = 1.4
    shading: float = 0.2
    blur: float = 1.0
    noise: float = 5.0
    jpeg: int = 0
    shift: float = 0.6
    size: float = 1.15
    turn: float = np.pi / 15

    @classmethod
    def strong(cls) -> Variation:
        """Return twice the change of light and camera, with JPEG compression."""
        return cls(gain=1.6, bias=40.0, gamma=2.0, shading=0.4, blur=2.0, noise=10.0, jpeg=30)


@dataclass(frozen=True)
class View:
    """A photo seen from elsewhere: the picture, and the homography from photo to picture."""

    image: UInt8Array
    homography: Float64Array


def draw_view(photo: UInt8Array, variation: Variation, rng: np.random.Generator) -> View:
    """See ``photo`` through a random homography, in other light, by a worse camera."""
    homography, size = _fit_canvas(photo.shape, _draw_homography(photo.shape, variation, rng))
    return View(_change_light(_warp(photo, homography, size), variation, rng), homography)


def transport(frames: Frames, homography: Float64Array) -> Frames:
    """Move frames through a homography: the similarity that is closest to it at each centre.

    Examples
    --------
    >>> twice = np.diag([2.0, 2.0, 1.0])
    >>> moved = transport(Frames([10], [20], [1.5], [0.3]), twice)
    >>> moved.x[0].item(), moved.y[0].item(), moved.sigma[0].item(), round(moved.angle[0], 6).item()
    (20.0, 40.0, 3.0, 0.3)
    """
    x, y, w = homography @ np.stack((frames.x, frames.y, np.ones(len(frames))))
    x, y = x / w, y / w
    (xx, xy, _), (yx, yy, _), (wx, wy, _) = homography
    # The homography's derivative at each centre.
    xx, xy = (xx - x * wx) / w, (xy - x * wy) / w
    yx, yy = (yx - y * wx) / w, (yy - y * wy) / w
    sigma = frames.sigma * np.sqrt(np.abs(xx * yy - xy * yx))
    angle = frames.angle + np.arctan2(yx - xy, xx + yy)
    return Frames(x, y, sigma, _wrap(angle))


def jitter(frames: Frames, variation: Variation, rng: np.random.Generator) -> Frames:
    """Disturb frames as a detector does that finds the same point in another photo."""
    n = len(frames)
    radius = variation.shift * frames.sigma * np.sqrt(rng.random(n))
    direction = rng.uniform(-np.pi, np.pi, n)
    return Frames(
        frames.x + radius * np.cos(direction),
        frames.y + radius * np.sin(direction),
        frames.sigma * variation.size ** rng.uniform(-1, 1, n),
        _wrap(frames.angle + variation.turn * rng.uniform(-1, 1, n)),
    )


def lie_inside(corners: Float64Array, view: View, photo: UInt8Array) -> BoolArray:
    """Which patches, given by their corners (n, 4, 2) in the view, show nothing but the photo."""
    places = np.concatenate((corners, np.ones((*corners.shape[:2], 1))), -1)
    places = places @ np.linalg.inv(view.homography).T
    x, y = places[..., 0] / places[..., 2], places[..., 1] / places[..., 2]
    height, width = photo.shape
    inside = (x >= 0) & (y >= 0) & (x <= width - 1) & (y <= height - 1)
    # The homography keeps every corner in front of the camera, so that corners suffice.
    return np.asarray(inside.all(axis=1))


def _draw_homography(
    shape: tuple[int, ...], variation: Variation, rng: np.random.Generator
) -> Float64Array:
    """About the middle of the photo: perspective, then tilt, scale and rotation."""
    height, width = shape
    half = max(height, width) / 2
    centre = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, 1]])
    direction = rng.uniform(-np.pi, np.pi)
    lean = variation.perspective * rng.uniform(-1, 1) / half
    perspective = np.eye(3)
    perspective[2, :2] = lean * np.cos(direction), lean * np.sin(direction)
    axis = _rotation(rng.uniform(-np.pi, np.pi))
    stretch = np.sqrt(variation.tilt ** rng.uniform(0, 1))
    tilt = axis @ np.diag([stretch, 1 / stretch, 1.0]) @ axis.T
    scale = variation.scale ** rng.uniform(-1, 1)
    turn = _rotation(variation.rotation * rng.uniform(-1, 1))
    homography: Float64Array = turn @ np.diag([scale, scale, 1.0]) @ tilt @ perspective @ centre
    return homography


def _fit_canvas(
    shape: tuple[int, ...], homography: Float64Array
) -> tuple[Float64Array, tuple[int, int]]:
    """Shift the picture so that all of it has coordinates from 0; return its width and height."""
    height, width = shape
    corners = np.array([[0, width - 1, width - 1, 0], [0, 0, height - 1, height - 1], [1, 1, 1, 1]])
    x, y, w = homography @ corners
    x, y = x / w, y / w
    shift = np.array([[1, 0, -x.min()], [0, 1, -y.min()], [0, 0, 1]])
    size = int(np.ceil(np.ptp(x))) + 1, int(np.ceil(np.ptp(y))) + 1
    return shift @ homography, size


def _warp(photo: UInt8Array, homography: Float64Array, size: tuple[int, int]) -> UInt8Array:
    """Sample twice as densely as needed, then average: a smaller picture must not alias."""
    cv2 = import_extra("cv2", "vision")
    middle = (_OVERSAMPLING - 1) / 2
    finer = np.array([[_OVERSAMPLING, 0, middle], [0, _OVERSAMPLING, middle], [0, 0, 1]])
    fine = cv2.warpPerspective(
        photo,
        finer @ homography,
        (size[0] * _OVERSAMPLING, size[1] * _OVERSAMPLING),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    image: UInt8Array = cv2.resize(fine, size, interpolation=cv2.INTER_AREA)
    return image


def _change_light(image: UInt8Array, variation: Variation, rng: np.random.Generator) -> UInt8Array:
    """Change gamma, gain, bias and shading, blur, and add noise."""
    cv2 = import_extra("cv2", "vision")
    height, width = image.shape
    levels = 255 * (np.arange(256) / 255) ** (variation.gamma ** rng.uniform(-1, 1))
    levels = levels * variation.gain ** rng.uniform(-1, 1) + variation.bias * rng.uniform(-1, 1)
    lit = levels.astype(np.float32)[image]
    direction, slope = rng.uniform(-np.pi, np.pi), variation.shading * rng.uniform(0, 1)
    across = np.linspace(-1, 1, width, dtype=np.float32) * np.float32(slope * np.cos(direction))
    down = np.linspace(-1, 1, height, dtype=np.float32) * np.float32(slope * np.sin(direction))
    lit *= 1 + across + down[:, None]
    blur = variation.blur * rng.uniform(0, 1)
    if blur > 0:
        lit = cv2.GaussianBlur(lit, (0, 0), blur)
    noise = variation.noise * rng.uniform(0, 1)
    lit += np.float32(noise) * rng.standard_normal(lit.shape, np.float32)
    final: UInt8Array = np.clip(np.rint(lit), 0, 255).astype(np.uint8)
    if variation.jpeg:
        quality = int(rng.integers(variation.jpeg, BEST_JPEG + 1))
        _, coded = cv2.imencode(".jpg", final, (cv2.IMWRITE_JPEG_QUALITY, quality))
        final = cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE)
    return final


def _rotation(angle: float) -> Float64Array:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])


def _wrap(angle: Float64Array) -> Float64Array:
    """The same direction between -pi and pi."""
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi

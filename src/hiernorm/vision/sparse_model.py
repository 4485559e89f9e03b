"""A sparse model of a scene: points and cameras, as a picture and as a page that can be turned."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm._files import replacing
from hiernorm.array_types import Float64Array, UInt8Array
from hiernorm.extras import import_extra

SIDE = 900
"""Width and height of the picture in pixels."""
CAMERA_COLOUR = (40, 40, 220)


@dataclass(frozen=True)
class SparseModel:
    """Points and cameras.

    Attributes
    ----------
    points : (n, 3) float64
    colours : (n, 3) uint8
        Red, green, blue of the points.
    centres : (m, 3) float64
        Where the cameras are.
    rotations : (m, 3, 3) float64
        From the world to each camera, which looks along its z; y points down.
    names
        Of the photos.
    """

    points: Float64Array
    colours: UInt8Array
    centres: Float64Array
    rotations: Float64Array
    names: tuple[str, ...]

    @classmethod
    def from_pycolmap(cls, model: Any) -> SparseModel:
        """The points and cameras of a ``pycolmap.Reconstruction``."""
        points = [model.points3D[key] for key in sorted(model.points3D)]
        images = sorted(
            (image for image in model.images.values() if image.has_pose), key=lambda i: i.name
        )
        poses = [image.cam_from_world() for image in images]
        return cls(
            np.array([point.xyz for point in points], np.float64).reshape(-1, 3),
            np.array([point.color for point in points], np.uint8).reshape(-1, 3),
            np.array([image.projection_center() for image in images], np.float64).reshape(-1, 3),
            np.array([pose.rotation.matrix() for pose in poses], np.float64).reshape(-1, 3, 3),
            tuple(str(image.name) for image in images),
        )

    def upright(self) -> SparseModel:
        """The model centred on its points, of about unit size, seen from behind the cameras."""
        middle = np.median(self.points, axis=0) if len(self.points) else np.zeros(3)
        near, far = (np.abs(places - middle).max(axis=1) for places in (self.points, self.centres))
        # All cameras are shown, but not the few points that are far off.
        size = max(float(np.percentile(near, 95)) if len(near) else 0.0, far.max(initial=0.0))
        view = _mean_rotation(self.rotations)
        points, centres = (
            ((p - middle) / (size or 1.0)) @ view.T for p in (self.points, self.centres)
        )
        return SparseModel(points, self.colours, centres, self.rotations @ view.T, self.names)

    def frusta(self, depth: float = 0.08) -> Float64Array:
        """Lines ``(m, 8, 2, 3)`` of a pyramid for each camera."""
        corners = depth * np.array(
            [[-0.6, -0.45, 1], [0.6, -0.45, 1], [0.6, 0.45, 1], [-0.6, 0.45, 1]]
        )
        placed = self.centres[:, np.newaxis] + np.einsum("mji,cj->mci", self.rotations, corners)
        tips = np.repeat(self.centres[:, np.newaxis], 4, axis=1)
        sides = np.stack((tips, placed), axis=2)
        rim = np.stack((placed, np.roll(placed, -1, axis=1)), axis=2)
        return np.concatenate((sides, rim), axis=1)


def draw_model(model: SparseModel, *, turn: float = 10.0, tilt: float = 35.0) -> UInt8Array:
    """Draw points and cameras, ``(SIDE, SIDE, 3)`` uint8, blue first as OpenCV has it.

    Parameters
    ----------
    model
        The model.
    turn, tilt
        Degrees that the view is turned around the vertical axis and tilted.
    """
    cv2 = import_extra("cv2", "vision")
    shown = model.upright()
    around, over = np.deg2rad((turn, tilt))
    turned = np.array(
        [[np.cos(around), 0, np.sin(around)], [0, 1, 0], [-np.sin(around), 0, np.cos(around)]]
    )
    tilted = np.array(
        [[1, 0, 0], [0, np.cos(over), -np.sin(over)], [0, np.sin(over), np.cos(over)]]
    )
    view = tilted @ turned
    points, lines = shown.points @ view.T, shown.frusta() @ view.T
    everything = np.concatenate((points[:, :2], lines.reshape(-1, 3)[:, :2]))
    canvas = np.full((SIDE, SIDE, 3), 255, np.uint8)
    if len(everything) == 0:
        return canvas
    low, high = np.percentile(everything, (1, 99), axis=0)
    low, high = (
        np.minimum(low, lines.reshape(-1, 3)[:, :2].min(axis=0, initial=np.inf)),
        np.maximum(high, lines.reshape(-1, 3)[:, :2].max(axis=0, initial=-np.inf)),
    )
    scale = 0.9 * SIDE / max(float((high - low).max()), 1e-9)

    def place(xyz: Float64Array) -> Float64Array:
        flat: Float64Array = (xyz[..., :2] - (low + high) / 2) * scale + SIDE / 2
        return flat

    for number in np.argsort(-points[:, 2]):  # the farthest first
        x, y = place(points[number])
        if 0 <= x < SIDE and 0 <= y < SIDE:
            colour = tuple(int(v) for v in shown.colours[number, ::-1])
            cv2.circle(canvas, (round(x), round(y)), 2, colour, -1, cv2.LINE_AA)
    for start, end in place(lines).reshape(-1, 2, 2):
        ends = [(round(float(x)), round(float(y))) for x, y in (start, end)]
        cv2.line(canvas, *ends, CAMERA_COLOUR, 1, cv2.LINE_AA)
    return canvas


def write_model_page(path: Path | str, model: SparseModel, title: str) -> None:
    """Write a page that shows the model and can be turned; one file, without a network.

    Parameters
    ----------
    path
        The ``.html`` file.
    model
        The model.
    title
        Shown above it.
    """
    shown = model.upright()
    data = {
        "title": title,
        "points": _base64(shown.points.astype("<f4")),
        "colours": _base64(shown.colours),
        "lines": _base64(shown.frusta().astype("<f4")),
        "names": list(shown.names),
    }
    page = (files("hiernorm.vision") / "sparse_model.html").read_text()
    # "<" is written as an escape, so that no name can end the script.
    content = page.replace("{{data}}", json.dumps(data).replace("<", "\\u003c"))
    with replacing(Path(path), durable=False) as fresh:
        fresh.write_text(content)


def _mean_rotation(rotations: Float64Array) -> Float64Array:
    """The rotation nearest to the mean of ``(m, 3, 3)``."""
    if len(rotations) == 0:
        return np.eye(3)
    left, _, right = np.linalg.svd(rotations.mean(axis=0))
    nearest: Float64Array = left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right
    return nearest


def _base64(array: Float64Array | UInt8Array) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()

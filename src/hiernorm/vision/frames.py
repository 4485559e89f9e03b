"""Frames: positions, scales and orientations of keypoints."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hiernorm.array_types import AnyArray, Float64Array


@dataclass(frozen=True)
class Frames:
    """Positions, scales and orientations of n keypoints.

    Attributes
    ----------
    x, y : (n,) float64
        Centre in pixels; the centre of the top left pixel is (0, 0), y points down.
    sigma : (n,) float64
        Scale in pixels: the sigma of the blob (half of OpenCV's keypoint ``size``).
    angle : (n,) float64
        Orientation in radians, from the x axis towards the y axis.

    Examples
    --------
    >>> frames = Frames([10, 20, 30], [5, 5, 5], [2, 2, 4], [0, 0, 3.14])
    >>> len(frames), frames[frames.sigma > 3].x.tolist()
    (3, [30.0])
    """

    x: Float64Array
    y: Float64Array
    sigma: Float64Array
    angle: Float64Array

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), np.float64)
            if values.ndim != 1:
                raise ValueError(f"frames need {field.name} of shape (n,), got {values.shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"frames need finite {field.name}, got NaN or infinity")
            object.__setattr__(self, field.name, values)
        sizes = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"frames need as many of each, got {sizes}")
        if (self.sigma <= 0).any():
            raise ValueError(f"frames need sigma above 0, got {self.sigma.min()}")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def centres(self) -> Float64Array:
        """The centres ``(n, 2)``: x and y."""
        return np.column_stack((self.x, self.y))

    def __getitem__(self, rows: AnyArray | slice) -> Frames:
        """The frames that a mask, an array of positions or a slice selects."""
        return Frames(self.x[rows], self.y[rows], self.sigma[rows], self.angle[rows])

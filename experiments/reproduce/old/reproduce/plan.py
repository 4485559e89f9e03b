"""The parts in the order in which they run, with the time that each is expected to take."""

from __future__ import annotations

from hiernorm.reproduce.parts import (
    cells,
    data,
    determinism,
    fixed_point,
    graphs,
    hardest,
    higher,
    layout,
    posthoc,
    quality,
    rotation,
    soft,
    speed,
)
from hiernorm.reproduce.work import Part

PARTS: tuple[Part, ...] = (
    data.PART,
    quality.PART,
    posthoc.PART,
    speed.PART,
    layout.PART,
    rotation.PART,
    determinism.PART,
    soft.PART,
    fixed_point.PART,
    cells.PART,
    higher.PART,
    graphs.PART,
    hardest.PART,
)
"""What takes longest, building graphs and training, comes last."""

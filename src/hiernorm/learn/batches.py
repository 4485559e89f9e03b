"""Training data: points held out, and batches that depend on nothing but seed, epoch and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from hiernorm.array_types import Int64Array, UInt8Array
from hiernorm.learn.augmentation import change_light, disturb_frames
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.settings import TrainingSettings


@dataclass(frozen=True)
class Batch:
    """Patches ``(b, 1, 64, 64)``, row by row of the same point, and a patch of another."""

    anchor: Tensor
    positive: Tensor
    negative: Tensor
    points: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))


class PatchSet:
    """Patches of points that were seen at least twice.

    Parameters
    ----------
    patches, points
        uint8 ``(n, 64, 64)`` and the point of each, ``(n,)``.
    places
        The scene of each patch, ``(n,)``; by default all are of one.
    """

    def __init__(
        self, patches: UInt8Array, points: Int64Array, places: Int64Array | None = None
    ) -> None:
        order = np.argsort(points, kind="stable")
        _, starts, counts = np.unique(points[order], return_index=True, return_counts=True)
        seen = counts >= 2
        if seen.sum() < 2:
            raise ValueError(
                "training needs at least two points with two patches each, "
                f"got {int(seen.sum())} of {len(points)} patches"
            )
        members = [order[s : s + c] for s, c in zip(starts[seen], counts[seen], strict=True)]
        self._patches = patches
        self._index = np.concatenate(members)
        self._counts = counts[seen]
        self._starts = np.concatenate([[0], np.cumsum(self._counts)[:-1]])
        self._point = np.repeat(np.arange(len(members)), self._counts)
        self._place = np.zeros(len(points), np.int64) if places is None else places
        owners = self._place[self._index[self._starts]]
        self._places = [np.flatnonzero(owners == place) for place in np.unique(owners)]

    def __len__(self) -> int:
        """Return the number of patches."""
        return len(self._index)

    @property
    def points(self) -> Int64Array:
        """The point of each patch, ``(n,)``, numbered from 0."""
        return self._point

    @property
    def places(self) -> Int64Array:
        """The scene of each patch, ``(n,)``."""
        return self._place[self._index]

    def tensors(self) -> Tensor:
        """Return all patches, ``(n, 1, 64, 64)``, uint8."""
        return torch.from_numpy(self._patches[self._index])[:, None]

    def sample(self, most: int) -> PatchSet:
        """Return at most about ``most`` patches.

        Points are drawn with all their patches, the same ones each time, as many patches of each
        scene where they have as many.
        """
        if most >= len(self):
            return self
        rng = np.random.default_rng(0)
        chosen = []
        for points in self._places:
            drawn = rng.permutation(points)
            within = np.cumsum(self._counts[drawn]) <= max(2, most // len(self._places))
            chosen.append(drawn[within] if within.sum() > 1 else drawn[:2])
        rows = np.flatnonzero(np.isin(self._point, np.concatenate(chosen)))
        kept = self._index[rows]
        return PatchSet(self._patches[kept], self._point[rows], self._place[kept])

    def steps(self, batch: int, sampling: str = "patches") -> int:
        """Return the number of batches of an epoch; the last is dropped unless it is full."""
        rows = len(self) if sampling == "patches" else len(self._counts)
        return max(1, rows // batch)

    def draw(
        self, settings: TrainingSettings, epoch: int, step: int, augment: bool = True
    ) -> Batch:
        """Return batch ``step`` of ``epoch``, the same one whenever it is asked for."""
        rng = np.random.default_rng([settings.seed, epoch, step])
        rows = self.draw_rows(settings, epoch, step, rng)
        groups = [self._patches[self._index[r]] for r in rows]
        if augment:
            groups = augment_groups(groups, settings, rng)
        a, p, n = (torch.from_numpy(g)[:, None].to(torch.float32) / 255 for g in groups)
        return Batch(a, p, n, torch.from_numpy(self._point[rows[0]]))

    def draw_rows(
        self,
        settings: TrainingSettings,
        epoch: int,
        step: int,
        rng: np.random.Generator | None = None,
    ) -> list[Int64Array]:
        """Return which patches are anchors, positives and negatives, each ``(b,)``."""
        if rng is None:
            rng = np.random.default_rng([settings.seed, epoch, step])
        if settings.sampling == "points":
            anchor = self._draw_balanced(settings, rng)
        else:
            order = np.random.default_rng([settings.seed, epoch]).permutation(len(self))
            anchor = order[step * settings.batch : (step + 1) * settings.batch]
        point = self._point[anchor]
        start, count = self._starts[point], self._counts[point]
        # Any other patch of the point: 1 to count - 1 places further, round its members.
        further = 1 + rng.integers(0, count - 1)
        positive = start + (anchor - start + further) % count
        negative = rng.integers(0, len(self), len(anchor))
        while (same := self._point[negative] == point).any():
            negative[same] = rng.integers(0, len(self), int(same.sum()))
        return [anchor, positive, negative]

    def _draw_balanced(self, settings: TrainingSettings, rng: np.random.Generator) -> Int64Array:
        """Draw a patch each of different points, as many of each scene that is drawn."""
        sizes = np.array([len(points) for points in self._places])
        drawn = np.arange(len(sizes))
        if 0 < settings.places_per_batch < len(sizes):
            weights = np.sqrt(sizes)
            drawn = rng.choice(
                drawn, settings.places_per_batch, replace=False, p=weights / weights.sum()
            )
        quotas = np.full(len(drawn), settings.batch // len(drawn))
        quotas[: settings.batch - quotas.sum()] += 1
        points = np.concatenate(
            [
                rng.choice(self._places[place], min(quota, sizes[place]), replace=False)
                for place, quota in zip(drawn, quotas, strict=True)
            ]
        )
        anchors: Int64Array = self._starts[points] + rng.integers(0, self._counts[points])
        return anchors


def augment_groups(
    groups: Sequence[UInt8Array], settings: TrainingSettings, rng: np.random.Generator
) -> list[UInt8Array]:
    """Flip and turn row i of every group ``(b, 64, 64)`` alike; shift every patch on its own."""
    changed = [g.copy() for g in groups]
    rows = len(changed[0])
    if "flips" in settings.augment:
        flipped = rng.random(rows) < 0.5
        for g in changed:
            g[flipped] = g[flipped, :, ::-1]
    if "turns" in settings.augment:
        quarters = rng.integers(0, 4, rows)
        for g in changed:
            for k in range(1, 4):
                g[quarters == k] = np.rot90(g[quarters == k], k, axes=(1, 2))
    return [_change_each(g, settings, rng) for g in changed]


def augment_all(
    patches: UInt8Array, settings: TrainingSettings, number: int, rng: np.random.Generator
) -> UInt8Array:
    """Flip and turn all patches ``(n, 64, 64)`` by one symmetry of the square; change each."""
    if "turns" in settings.augment:
        patches = np.rot90(patches, number % 4, axes=(1, 2))
    if "flips" in settings.augment and number // 4 % 2:
        patches = patches[:, :, ::-1]
    return _change_each(np.ascontiguousarray(patches), settings, rng)


def _change_each(
    patches: UInt8Array, settings: TrainingSettings, rng: np.random.Generator
) -> UInt8Array:
    """Shift each patch, and change its frame and its light, as far as the settings say."""
    if "shifts" in settings.augment:
        patches = _shifted(patches, settings.shift, rng)
    if "frames" in settings.augment:
        patches = disturb_frames(patches, rng)
    if "light" in settings.augment:
        patches = change_light(patches, rng)
    return patches


def _shifted(patches: UInt8Array, most: int, rng: np.random.Generator) -> UInt8Array:
    """Shift each patch by up to ``most`` pixels each way; edges are repeated."""
    size = patches.shape[1]
    padded = np.pad(patches, ((0, 0), (most, most), (most, most)), mode="edge")
    dy, dx = rng.integers(0, 2 * most + 1, size=(2, len(patches)))
    rows = dy[:, None] + np.arange(size)
    columns = dx[:, None] + np.arange(size)
    which = np.arange(len(patches))[:, None, None]
    shifted: UInt8Array = padded[which, rows[:, :, None], columns[:, None, :]]
    return shifted


def load_sets(settings: TrainingSettings) -> tuple[PatchSet, PatchSet]:
    """Read the scenes; return patches of training points and of points held out."""
    scenes = [PhotoTour.open(path) for path in settings.data]
    patches = np.concatenate([s.patches for s in scenes])
    places = np.repeat(np.arange(len(scenes)), [len(s) for s in scenes])
    numbered, first = [], 0
    for scene in scenes:
        _, points = np.unique(scene.points, return_inverse=True)
        numbered.append(points + first)
        first += len(scene.point_ids)
    points = np.concatenate(numbered)
    rng = np.random.default_rng([settings.seed, 2**31])
    held_out = rng.random(first) < settings.validation
    held = held_out[points]
    return (
        PatchSet(patches[~held], points[~held], places[~held]),
        PatchSet(patches[held], points[held], places[held]),
    )

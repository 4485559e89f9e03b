"""Development scenes: FPR@95 of a network in training, on scenes outside the training data."""

from __future__ import annotations

import numpy as np
import torch

from hiernorm.learn.devices import device_of
from hiernorm.learn.measures import compute_roc, pair_distances
from hiernorm.learn.network import PatchNetwork
from hiernorm.learn.pairs import make_pairs
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.rotate import CHUNK
from hiernorm.learn.settings import TrainingSettings

MOST_PATCHES = 6000
"""Patches of a scene that are described after each epoch: half a minute of a slow core."""


class DevelopmentScene:
    """Some points of a scene, with pairs of their patches.

    Parameters
    ----------
    scene
        The whole of it.
    most
        Patches to keep: points are drawn at random, the same ones each time, until there are so
        many.

    Attributes
    ----------
    scene
        The name.
    patches, points, pairs
        What is kept: uint8 ``(n, 64, 64)``, the point of each ``(n,)``, and pairs of them.
    """

    def __init__(self, scene: PhotoTour, most: int = MOST_PATCHES) -> None:
        self.scene = scene.scene
        shuffled = np.random.default_rng(0).permutation(scene.point_ids)
        counts = np.bincount(np.searchsorted(scene.point_ids, scene.points))
        total = np.cumsum(counts[np.searchsorted(scene.point_ids, shuffled)])
        kept = np.isin(scene.points, shuffled[: max(2, np.searchsorted(total, most))])
        self.patches = scene.patches[kept]
        self.points = scene.points[kept]
        self.pairs = make_pairs(self.points)

    @torch.no_grad()
    def measure(self, network: PatchNetwork) -> float:
        """Return FPR@95 of the network."""
        chunks = torch.split(torch.from_numpy(self.patches)[:, None], CHUNK)
        device = device_of(network)
        described = [network(chunk.to(device, torch.float32) / 255).cpu() for chunk in chunks]
        distances = pair_distances(torch.cat(described).numpy(), self.pairs)
        return compute_roc(distances, self.pairs.matching).fpr95


def load_development(settings: TrainingSettings) -> list[DevelopmentScene]:
    """Read the development scenes of a run."""
    return [DevelopmentScene(PhotoTour.open(path)) for path in settings.development]

"""The loss of a batch: as the settings ask, on descriptors, majors and a teacher's distances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from hiernorm.learn.batches import Batch
from hiernorm.learn.checkpoint import load_weights, set_weights
from hiernorm.learn.losses import Distances, compare_hardest, compare_random, distillation_loss
from hiernorm.learn.network import HNHardNet
from hiernorm.learn.settings import Settings


class Objective:
    """What a run minimises.

    Parameters
    ----------
    settings
        Of the run; a teacher is loaded if they name one.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._teacher: HNHardNet | None = None
        if settings.distill_weight:
            self._teacher = HNHardNet(norm="l2")
            set_weights(self._teacher, load_weights(settings.teacher), settings.teacher)
            self._teacher.eval()

    def __call__(self, network: HNHardNet, batch: Batch) -> tuple[Tensor, Distances]:
        """Return the loss of a batch, and the distances behind it."""
        settings = self._settings
        groups = [batch.anchor, batch.positive, batch.negative][: settings.patches_per_row]
        descriptors = network(torch.cat(groups)).chunk(len(groups))
        distances = self._compare(descriptors, batch.points)
        loss = distances.margin_loss(settings.margin)
        if settings.major_weight:
            majors = [functional.normalize(d[:, : settings.major]) for d in descriptors]
            on_major = self._compare(majors, batch.points).margin_loss(settings.margin)
            loss = loss + settings.major_weight * on_major
        if self._teacher is not None:
            with torch.no_grad():
                taught = self._teacher(torch.cat(groups[:2])).chunk(2)
            kept = distillation_loss(descriptors[0] @ descriptors[1].T, taught[0] @ taught[1].T)
            loss = loss + settings.distill_weight * kept
        return loss, distances

    def _compare(self, descriptors: Sequence[Tensor], points: Tensor) -> Distances:
        if self._settings.loss == "triplet":
            return compare_random(*descriptors)
        return compare_hardest(descriptors[0], descriptors[1], points)

"""The loss of a batch: as the settings ask, on descriptors, majors and a teacher's distances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from hiernorm.learn.batches import Batch
from hiernorm.learn.checkpoint import load_weights, set_weights
from hiernorm.learn.losses import (
    Distances,
    compare_hardest,
    compare_random,
    distillation_loss,
    ranking_loss,
)
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
        self.teacher: HNHardNet | None = None
        if settings.distill_weight:
            self.teacher = HNHardNet(norm="l2")
            set_weights(self.teacher, load_weights(settings.teacher), settings.teacher)
            self.teacher.eval()

    def __call__(self, network: HNHardNet, batch: Batch) -> tuple[Tensor, Distances]:
        """Return the loss of a batch, and the distances behind it."""
        groups = [batch.anchor, batch.positive, batch.negative][: self._settings.patches_per_row]
        descriptors = network(torch.cat(groups)).chunk(len(groups))
        taught = None
        if self.teacher is not None:
            with torch.no_grad():
                taught = self.teacher(torch.cat(groups[:2])).chunk(2)
        return self.combine(descriptors, batch.points, taught)

    def combine(
        self, descriptors: Sequence[Tensor], points: Tensor, taught: Sequence[Tensor] | None
    ) -> tuple[Tensor, Distances]:
        """Return the loss of descriptors ``(b, d)`` of anchors, positives and negatives.

        ``points (b,)`` are those of the rows, ``taught`` the teacher's descriptors of the same
        anchors and positives, if there is a teacher.
        """
        settings = self._settings
        distances = self._compare(descriptors, points)
        loss = self._judge(descriptors, points, distances)
        if settings.major_weight:
            majors = [functional.normalize(d[:, : settings.major]) for d in descriptors]
            on_major = self._judge(majors, points, self._compare(majors, points))
            loss = loss + settings.major_weight * on_major
        if taught is not None:
            kept = distillation_loss(descriptors[0] @ descriptors[1].T, taught[0] @ taught[1].T)
            loss = loss + settings.distill_weight * kept
        return loss, distances

    def _judge(self, descriptors: Sequence[Tensor], points: Tensor, distances: Distances) -> Tensor:
        if self._settings.loss == "ranking":
            return ranking_loss(descriptors[0], descriptors[1], points, self._settings.least_share)
        return distances.margin_loss(self._settings.margin)

    def _compare(self, descriptors: Sequence[Tensor], points: Tensor) -> Distances:
        if self._settings.loss == "triplet":
            return compare_random(*descriptors)
        return compare_hardest(descriptors[0], descriptors[1], points)

"""The loss of a batch, by the settings: on descriptors, majors and a teacher's distances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from hiernorm.learn.batches import Batch
from hiernorm.learn.losses import (
    Distances,
    compare_hardest,
    compare_random,
    distillation_loss,
    fpr_loss,
    phase2_loss,
    second_order_loss,
    spread_loss,
)
from hiernorm.learn.network import PatchNetwork
from hiernorm.learn.plain import load_plain
from hiernorm.learn.settings import TrainingSettings


class Objective:
    """The function that a run minimises.

    Parameters
    ----------
    settings
        Settings of the run. The teachers that they name are loaded.
    device
        Device of the teachers.
    """

    def __init__(self, settings: TrainingSettings, device: torch.device | str = "cpu") -> None:
        self._settings = settings
        named = settings.teacher if settings.distill_weight else ()
        self.teachers = [load_plain(path).to(device) for path in named]

    def __call__(self, network: PatchNetwork, batch: Batch) -> tuple[Tensor, Distances]:
        """Return the loss of a batch, and the distances behind it."""
        groups = [batch.anchor, batch.positive, batch.negative][: self._settings.patches_per_row]
        descriptors = network(torch.cat(groups)).chunk(len(groups))
        taught = self.teach(torch.cat(groups[:2])).chunk(2) if self.teachers else None
        return self.combine(descriptors, batch.points, taught)

    @torch.no_grad()
    def teach(self, patches: Tensor) -> Tensor:
        """Return the teachers' descriptors of patches, side by side: ``(n, teachers, d)``."""
        return torch.stack([teacher(patches) for teacher in self.teachers], dim=1)

    def combine(
        self, descriptors: Sequence[Tensor], points: Tensor, taught: Sequence[Tensor] | None
    ) -> tuple[Tensor, Distances]:
        """Return the loss of descriptors ``(b, d)`` of anchors, positives and negatives.

        ``points (b,)`` are those of the rows, ``taught`` the teachers' descriptors of the same
        anchors and positives, each ``(b, teachers, d)``, if there are teachers.
        """
        settings = self._settings
        compared = self._compare(descriptors, points)
        loss = self._judge(descriptors, points, compared)
        majors = [functional.normalize(d[:, : settings.major]) for d in descriptors]
        if settings.spread_weight:
            loss = loss + settings.spread_weight * spread_loss(majors[0], majors[1], points)
        if settings.phase2_weight:
            anchor, positive = descriptors[:2]
            share = phase2_loss(anchor, positive, points, settings.major, settings.alpha)
            loss = loss + settings.phase2_weight * share
        if settings.major_weight:
            on_major = self._judge(majors, points, self._compare(majors, points))
            loss = loss + settings.major_weight * on_major
        if taught is not None:
            similarities = torch.einsum("atd,btd->tab", taught[0], taught[1])
            distilled = distillation_loss(descriptors[0] @ descriptors[1].T, similarities)
            loss = loss + settings.distill_weight * distilled
        if settings.second_order_weight:
            second_order = second_order_loss(descriptors[0], descriptors[1])
            loss = loss + settings.second_order_weight * second_order
        return loss, compared

    def _judge(self, descriptors: Sequence[Tensor], points: Tensor, compared: Distances) -> Tensor:
        loss = compared.margin_loss(self._settings.margin)
        if self._settings.fpr_weight:
            rate = fpr_loss(descriptors[0], descriptors[1], points)
            loss = loss + self._settings.fpr_weight * rate
        return loss

    def _compare(self, descriptors: Sequence[Tensor], points: Tensor) -> Distances:
        if self._settings.loss == "triplet":
            return compare_random(*descriptors)
        return compare_hardest(descriptors[0], descriptors[1], points)

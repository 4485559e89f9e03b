"""Losses on descriptors of anchors and positives; each row of both shows the same point."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

FAR = 10.0
"""Added to distances of rows that are no negatives; unit vectors are at most 2 apart."""

SOFTNESS = 0.05
"""Distances that differ by less than a few of these count as near in the ranking loss."""


@dataclass(frozen=True)
class Distances:
    """Distances of each row, ``(b,)``: to the positive, and to the negative that was chosen."""

    positive: Tensor
    negative: Tensor

    def margin_loss(self, margin: float) -> Tensor:
        """Return the mean of max(0, margin + positive - negative), as TripletMarginLoss does."""
        return (margin + self.positive - self.negative).clamp_min(0).mean()


def compare_random(anchor: Tensor, positive: Tensor, negative: Tensor) -> Distances:
    """Return the distances to positives and given negatives, all ``(b, d)``.

    Examples
    --------
    >>> import torch
    >>> unit = torch.eye(3)
    >>> compare_random(unit, unit, unit.roll(1, 0)).negative
    tensor([1.4142, 1.4142, 1.4142])
    """
    return Distances(
        functional.pairwise_distance(anchor, positive),
        functional.pairwise_distance(anchor, negative),
    )


def compare_hardest(anchor: Tensor, positive: Tensor, points: Tensor) -> Distances:
    """Return the distances to positives and to the hardest negatives in the batch.

    HardNet's own: the negative of row i is the nearest to either of its patches among the patches
    of the other side; rows of the same point are no negatives of one another.

    Parameters
    ----------
    anchor, positive
        Unit descriptors ``(b, d)``.
    points
        The point of each row, ``(b,)``.
    """
    apart = distances(anchor @ positive.T)
    same = points[:, None] == points[None, :]
    others = apart + FAR * same
    hardest = torch.minimum(others.amin(dim=1), others.amin(dim=0))
    return Distances(apart.diagonal(), hardest)


def ranking_loss(
    anchor: Tensor, positive: Tensor, points: Tensor, least_share: float = 0.03
) -> Tensor:
    """Return how many negatives of the whole batch lie nearer than positives do, smoothly.

    A threshold that admits positive i admits the share f_i of the negatives; FPR@95 is the share
    that 95% of the positives stay below. The loss is the mean of log(f_i + least_share). The
    logarithm compares ratios: the few positives that no descriptor can match do not dominate the
    loss, and nothing is gained where the share is already well below ``least_share``.

    Parameters
    ----------
    anchor, positive
        Unit descriptors ``(b, d)``.
    points
        The point of each row, ``(b,)``; rows of the same point are no negatives of one another.
    least_share
        Shares well below this no longer matter; about the FPR@95 that is expected.

    Examples
    --------
    >>> import torch
    >>> unit = torch.eye(3)
    >>> round(ranking_loss(unit, unit, torch.arange(3)).item(), 3)
    -3.507
    """
    apart = distances(anchor @ positive.T)
    negatives = apart[points[:, None] != points[None, :]]
    nearer = torch.sigmoid((apart.diagonal()[:, None] - negatives[None, :]) / SOFTNESS)
    return (nearer.mean(dim=1) + least_share).log().mean()


def distances(similarities: Tensor) -> Tensor:
    """Return the distances of unit vectors from their inner products, with finite gradients."""
    return (2 - 2 * similarities).clamp_min(1e-6).sqrt()


def second_order_loss(anchor: Tensor, positive: Tensor) -> Tensor:
    """Return how much distances among anchors differ from those among their positives.

    The regularisation of SOSNet, over all rows of the batch: the root of the mean square for each
    row, then their mean.

    Examples
    --------
    >>> import torch
    >>> second_order_loss(torch.eye(3), torch.eye(3)).item() < 1e-5
    True
    """
    apart = distances(anchor @ anchor.T) - distances(positive @ positive.T)
    return (apart.square().mean(dim=1) + 1e-12).sqrt().mean()


def distillation_loss(similarities: Tensor, teachers: Tensor) -> Tensor:
    """Return how far distances are from the teachers', up to offset and scale.

    Each matrix of distances is brought to mean 0 and deviation 1 first, since networks differ in
    the scale of their distances; the mean over teachers is the target.

    Parameters
    ----------
    similarities
        Inner products of anchors and positives, ``(b, b)``.
    teachers
        Theirs, ``(t, b, b)``.

    Returns
    -------
    The mean square of the difference: 0 if distances agree, 2 if they are uncorrelated.

    Examples
    --------
    >>> import torch
    >>> products = torch.tensor([[1.0, 0.2], [0.3, 0.9]])
    >>> round(distillation_loss(products, products[None]).item(), 6)
    0.0
    """
    target = _standardized(_standardized(distances(teachers)).mean(dim=0))
    return functional.mse_loss(_standardized(distances(similarities)), target)


def _standardized(matrices: Tensor) -> Tensor:
    """Bring each matrix ``(..., b, b)`` to mean 0 and deviation 1."""
    centred = matrices - matrices.mean(dim=(-2, -1), keepdim=True)
    scale = centred.square().mean(dim=(-2, -1), keepdim=True).sqrt()
    return centred / scale.clamp_min(1e-6)

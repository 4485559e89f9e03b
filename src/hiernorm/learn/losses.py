"""Losses on descriptors of anchors and positives; each row of both shows the same point."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

FAR = 10.0
"""Added to distances of rows that are no negatives; unit vectors are at most 2 apart."""

SOFTNESS = 0.02
"""Negatives within a few of these of a threshold count in part in the losses that are rates."""

THRESHOLD_RANKS = 0.92, 0.98
"""Ranks of the positives whose mean distance is the threshold of FPR@95."""

LEAST_RATE = 1e-4
"""Added to the rate in its logarithm: below it nothing is gained."""


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


def fpr_loss(anchor: Tensor, positive: Tensor, points: Tensor) -> Tensor:
    """Return the logarithm of the batch's FPR@95, smoothly.

    The threshold is the distance that admits 95% of the positives: the mean of those of rank 92%
    to 98%, so that several pairs have a gradient. The false positives are the negatives of the
    whole batch that are nearer. The logarithm compares ratios.

    Parameters
    ----------
    anchor, positive
        Unit descriptors ``(b, d)``.
    points
        The point of each row, ``(b,)``; rows of the same point are no negatives of one another.

    Examples
    --------
    >>> import torch
    >>> unit = torch.eye(30)
    >>> round(fpr_loss(unit, unit, torch.arange(30)).item(), 2)  # no false positive: LEAST_RATE
    -9.21
    """
    apart = distances(anchor @ positive.T)
    ranked = apart.diagonal().sort().values
    first, last = (int(len(ranked) * share) for share in THRESHOLD_RANKS)
    threshold = ranked[first : max(last, first + 1)].mean()
    negatives = apart[points[:, None] != points[None, :]]
    rate = torch.sigmoid((threshold - negatives) / SOFTNESS).mean()
    return (rate + LEAST_RATE).log()


def phase2_loss(
    anchor: Tensor, positive: Tensor, points: Tensor, major: int, alpha: float
) -> Tensor:
    """Return the logarithm of the share of negatives that Phase 2 evaluates, smoothly.

    An anchor is the query. Its positive is the best entry, so its score is the threshold of the
    search. Phase 2 evaluates the negatives whose bound, the product of the majors plus alpha,
    reaches it.

    Parameters
    ----------
    anchor, positive
        Descriptors ``(b, d)`` by Hierarchical Normalization.
    points
        The point of each row, ``(b,)``; rows of the same point are no negatives of one another.
    major, alpha
        Parameters of the normalisation.

    Examples
    --------
    >>> import torch
    >>> unit = torch.eye(30)
    >>> round(phase2_loss(unit, unit, torch.arange(30), 29, 1 / 8).item(), 2)  # LEAST_RATE
    -9.21
    """
    scores = (anchor * positive).sum(dim=1, keepdim=True)
    bounds = anchor[:, :major] @ positive[:, :major].T + alpha
    excess = (bounds - scores)[points[:, None] != points[None, :]]
    return (torch.sigmoid(excess / SOFTNESS).mean() + LEAST_RATE).log()


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


def spread_loss(anchor: Tensor, positive: Tensor, points: Tensor) -> Tensor:
    """Return how far negatives are from being spread evenly over the sphere.

    Global orthogonal regularisation (Zhang et al. 2017): inner products of directions that are
    spread evenly have mean 0 and mean square 1/d. On majors it keeps the bound of the search
    tight. Without it, a loss that only compares distances is free to make all majors alike.

    Parameters
    ----------
    anchor, positive
        Unit vectors ``(b, d)``.
    points
        The point of each row, ``(b,)``; rows of the same point are no negatives of one another.

    Examples
    --------
    >>> import torch
    >>> alike = torch.ones(4, 1)
    >>> spread_loss(alike, alike, torch.arange(4)).item()
    1.0
    """
    products = (anchor @ positive.T)[points[:, None] != points[None, :]]
    excess = products.square().mean() - 1 / anchor.shape[1]
    return products.mean().square() + excess.clamp_min(0)


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

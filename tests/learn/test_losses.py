"""Losses are what their definitions say, and augmentation moves patches as told."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import TripletMarginLoss

from hiernorm.learn import TrainingSettings
from hiernorm.learn.batches import augment_groups
from hiernorm.learn.layer import HierarchicalNorm
from hiernorm.learn.losses import (
    compare_hardest,
    compare_random,
    fpr_loss,
    phase2_loss,
    spread_loss,
)


def test_triplet_loss_is_torchs() -> None:
    a, p, n = torch.nn.functional.normalize(torch.randn(3, 10, 8), dim=-1)
    ours = compare_random(a, p, n).margin_loss(1.0)
    torch.testing.assert_close(ours, TripletMarginLoss(margin=1.0)(a, p, n))


def test_hardest_negatives_are_the_nearest_of_other_points() -> None:
    torch.manual_seed(0)
    a, p = torch.nn.functional.normalize(torch.randn(2, 12, 8), dim=-1).double()
    points = torch.arange(12) // 2  # every point twice
    found = compare_hardest(a, p, points)
    apart = torch.cdist(a, p)
    for i in range(12):
        others = points != points[i]
        expected = min(apart[i, others].min(), apart[others, i].min())
        torch.testing.assert_close(found.negative[i], expected)
        torch.testing.assert_close(found.positive[i], apart[i, i])


def test_the_fpr_loss_is_the_logarithm_of_fpr_at_95_percent_recall() -> None:
    torch.manual_seed(1)
    a, p = torch.nn.functional.normalize(torch.randn(2, 400, 8), dim=-1).double()
    p = torch.nn.functional.normalize(a + 0.9 * p, dim=-1)
    points = torch.arange(400) // 2  # rows of the same point are no negatives
    apart = torch.cdist(a, p)
    negatives = apart[points[:, None] != points[None, :]]
    rate = (negatives < apart.diagonal().quantile(0.95)).double().mean()
    assert 0.01 < rate < 0.2
    assert abs(fpr_loss(a, p, points) - rate.log()) < 0.1
    nearer = torch.nn.functional.normalize(a + 0.5 * (p - a), dim=-1)
    assert fpr_loss(a, nearer, points) < fpr_loss(a, p, points) - 1


def test_the_phase2_loss_is_the_logarithm_of_the_share_whose_bound_reaches_the_match() -> None:
    torch.manual_seed(0)
    norm = HierarchicalNorm(major=8, alpha=1 / 8)
    rows = torch.randn(400, 32)
    a, p = (norm(rows + 0.6 * torch.randn(400, 32)) for _ in range(2))
    points = torch.arange(400) // 2  # rows of the same point are no negatives
    score = (a * p).sum(dim=1)
    evaluated = a[:, :8] @ p[:, :8].T + 1 / 8 >= score[:, None]
    share = evaluated[points[:, None] != points[None, :]].double().mean()
    assert 0.01 < share < 0.5
    assert abs(phase2_loss(a, p, points, 8, 1 / 8) - share.log()) < 0.05
    assert phase2_loss(a, a, points, 8, 1 / 8) < phase2_loss(a, p, points, 8, 1 / 8) - 0.5


def test_the_spread_loss_is_zero_for_directions_spread_evenly() -> None:
    generator = torch.Generator().manual_seed(0)
    a, p = torch.nn.functional.normalize(torch.randn(2, 2000, 8, generator=generator), dim=-1)
    points = torch.arange(2000)
    assert spread_loss(a, p, points) < 1e-3
    leaning = a + torch.eye(8)[0]
    leaning = torch.nn.functional.normalize(leaning, dim=-1)
    assert spread_loss(leaning, leaning, points) > 0.1
    # The only pair of distinct points is orthogonal; pairs of one point do not count.
    two = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert spread_loss(two, two, torch.tensor([0, 1])) == 0


def test_augmentation_turns_a_row_alike_and_shifts_each_patch() -> None:
    patch = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64).astype(np.uint8)
    group = np.stack([patch] * 200)
    rng = np.random.default_rng(0)
    settings = TrainingSettings(data=("x",), augment=("flips", "turns"))
    a, b = augment_groups([group, group], settings, rng)
    np.testing.assert_array_equal(a, b)
    variants = {x.tobytes() for x in a}
    square = [np.rot90(f, k) for f in (patch, patch[:, ::-1]) for k in range(4)]
    assert variants == {np.ascontiguousarray(x).tobytes() for x in square}
    a, b = augment_groups([group, group], TrainingSettings(data=("x",), augment=("shifts",)), rng)
    assert not np.array_equal(a, b)
    centres = {(int(x[32, 32])) for x in a}
    near = {int(patch[32 + dy, 32 + dx]) for dy in range(-2, 3) for dx in range(-2, 3)}
    assert centres == near

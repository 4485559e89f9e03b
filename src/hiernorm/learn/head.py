"""Train the last layers alone, on activations that are computed once: minutes instead of hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hiernorm.learn.batches import PatchSet, augment_all
from hiernorm.learn.devices import device_of
from hiernorm.learn.network import HNHardNet, PatchNetwork
from hiernorm.learn.objective import Objective
from hiernorm.learn.settings import TrainingSettings
from hiernorm.progress import ProgressCallback

CHUNK = 256
"""Patches whose activations are computed at a time."""


@dataclass(frozen=True)
class _CachedActivations:
    """One variant of the training patches, by one symmetry of the square.

    Activations before the layers that are trained, float16 ``(n, channels, height, width)``, and
    the teacher's descriptors. They stay in the memory of the processor: they are too many for that
    of another device.
    """

    activations: Tensor
    taught: Tensor | None


def train_head(
    network: PatchNetwork,
    train_set: PatchSet,
    settings: TrainingSettings,
    progress: ProgressCallback | None = None,
) -> None:
    """Train the last ``head_layers`` convolutions, in place; the rest keeps its weights.

    The last layer has four fifths of the weights and nearly none of the arithmetic; the last two
    have nine tenths of the weights and a quarter of the arithmetic. So they can see far more
    batches than the whole network could. Augmentation is limited to ``head_views`` variants of
    every patch, since activations are computed once. The statistics of batch normalisation stay
    as they are.

    Parameters
    ----------
    network
        The network with the weights to start from.
    train_set, settings
        The run's patches and settings. Each variant is used in ``settings.head_epochs`` epochs.
    progress
        Called after each step, and after each variant whose activations are computed. A variant
        counts as much as the steps that use it.
    """
    if not isinstance(network, HNHardNet):
        raise ValueError(f"head_epochs is for HardNet, got {network.title}")
    device = device_of(network)
    objective = Objective(settings, device)
    network.eval()
    train_set = train_set.sample(settings.head_patches)
    steps = train_set.steps(settings.batch, settings.sampling)
    total = settings.head_epochs * settings.head_views * steps
    views = []
    for i in range(settings.head_views):
        views.append(_compute_activations(network, train_set, settings, objective, i))
        if progress:
            progress((i + 1) * settings.head_epochs * steps, 2 * total)
    head = _split(network, settings)[1]
    optimizer = torch.optim.Adam(head.parameters(), lr=settings.head_learning_rate)
    network.features[-3].train()  # dropout
    for done in range(total):
        epoch, step = divmod(done, steps)
        torch.manual_seed(int(np.random.SeedSequence([settings.seed, done]).generate_state(1)[0]))
        for group in optimizer.param_groups:
            group["lr"] = settings.head_learning_rate * (1 - done / total)
        view = views[epoch % len(views)]
        rows = train_set.draw_rows(settings, epoch, step)
        pair = torch.from_numpy(np.concatenate(rows[: settings.patches_per_row]))
        activations = view.activations[pair].to(device)
        features = head(activations.float().to(memory_format=torch.channels_last)).flatten(1)
        descriptors = network.normalization(features).chunk(settings.patches_per_row)
        points = torch.from_numpy(train_set.points[rows[0]]).to(device)
        taught = (
            None
            if view.taught is None
            else view.taught[pair].to(device).chunk(settings.patches_per_row)
        )
        loss, _ = objective.combine(descriptors, points, taught)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        if progress:
            progress(total + done + 1, 2 * total)
    network.eval()


def _split(network: HNHardNet, settings: TrainingSettings) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the layers before the head, and the head.

    Each convolution of HardNet stands in a group of three modules, with batch normalisation and
    ReLU behind it; the last one has dropout before it instead of ReLU behind.
    """
    first = len(network.features) - 3 * settings.head_layers
    return network.features[:first], network.features[first:]


@torch.no_grad()
def _compute_activations(
    network: HNHardNet,
    train_set: PatchSet,
    settings: TrainingSettings,
    objective: Objective,
    number: int,
) -> _CachedActivations:
    """Compute activations of all patches, under one of the eight symmetries of a square."""
    body = _split(network, settings)[0]
    activations, taught = [], []
    rng = np.random.default_rng([settings.seed, 2**31, number])
    for chunk in torch.split(train_set.tensors()[:, 0], CHUNK):
        changed = augment_all(chunk.numpy(), settings, number, rng)
        ready = torch.from_numpy(changed)[:, None].to(device_of(network), torch.float32) / 255
        prepared = network.input(ready).to(memory_format=torch.channels_last)
        activations.append(body(prepared).half().cpu())
        if objective.teachers:
            taught.append(objective.teach(ready).cpu())
    return _CachedActivations(torch.cat(activations), torch.cat(taught) if taught else None)

"""Train the last layers alone, on activations that are computed once: minutes instead of hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hiernorm.learn.batches import PatchSet, augment_all
from hiernorm.learn.devices import device_of
from hiernorm.learn.network import PatchNetwork
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
    of another device. ``rows`` are those of the run's patches, if it trains on a part of them.
    """

    activations: Tensor
    taught: Tensor | None
    rows: Tensor | None = None

    def take(self, patches: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the activations and the teacher's descriptors of some patches of the run."""
        chosen = patches if self.rows is None else self.rows[patches]
        return self.activations[chosen], None if self.taught is None else self.taught[chosen]


class HeadActivations:
    """Activations before the head, kept for runs that differ only in the head or in the loss.

    A rotation changes the last layer alone, so variants of one network share them.
    """

    def __init__(self) -> None:
        self._variants: dict[tuple[object, ...], _CachedActivations] = {}

    def get(
        self,
        network: PatchNetwork,
        train_set: PatchSet,
        settings: TrainingSettings,
        objective: Objective,
        number: int,
    ) -> _CachedActivations:
        """Return the activations of variant ``number``, computed when first asked for."""
        taught = settings.teacher if settings.distill_weight else ()
        patches = settings.data, settings.validation, settings.head_patches, settings.seed
        changes = number, settings.augment, settings.shift
        key = (*patches, *changes, settings.init, settings.head_layers, taught)
        if not settings.init or key not in self._variants:  # random weights differ from run to run
            found = _compute_activations(network, train_set, settings, objective, number)
            self._variants[key] = found
        return self._variants[key]


def train_head(
    network: PatchNetwork,
    train_set: PatchSet,
    settings: TrainingSettings,
    progress: ProgressCallback | None = None,
    activations: HeadActivations | None = None,
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
    activations
        Activations of earlier runs from the same weights, which need not be computed again.
    """
    device = device_of(network)
    objective = Objective(settings, device)
    network.eval()
    train_set = train_set.sample(settings.head_patches)
    steps = train_set.steps(settings.batch, settings.sampling)
    total = settings.head_epochs * settings.head_views * steps
    views = []
    kept = activations or HeadActivations()
    for i in range(settings.head_views):
        views.append(kept.get(network, train_set, settings, objective, i))
        if progress:
            progress((i + 1) * settings.head_epochs * steps, 2 * total)
    head = network.split(settings.head_layers)[1]
    optimizer = torch.optim.Adam(head.parameters(), lr=settings.head_learning_rate)
    for module in head:
        module.train(isinstance(module, nn.Dropout))
    for done in range(total):
        epoch, step = divmod(done, steps)
        torch.manual_seed(int(np.random.SeedSequence([settings.seed, done]).generate_state(1)[0]))
        for group in optimizer.param_groups:
            group["lr"] = settings.head_learning_rate * (1 - done / total)
        view = views[epoch % len(views)]
        rows = train_set.draw_rows(settings, epoch, step)
        pair = torch.from_numpy(np.concatenate(rows[: settings.patches_per_row]))
        before, known = view.take(pair)
        ready = before.to(device).float().to(memory_format=torch.channels_last)
        descriptors = network.normalization(head(ready).flatten(1)).chunk(settings.patches_per_row)
        points = torch.from_numpy(train_set.points[rows[0]]).to(device)
        taught = None if known is None else known.to(device).chunk(settings.patches_per_row)
        loss, _ = objective.combine(descriptors, points, taught)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        if progress:
            progress(total + done + 1, 2 * total)
    network.eval()


@torch.no_grad()
def _compute_activations(
    network: PatchNetwork,
    train_set: PatchSet,
    settings: TrainingSettings,
    objective: Objective,
    number: int,
) -> _CachedActivations:
    """Compute activations of all patches, under one of the eight symmetries of a square."""
    body = network.split(settings.head_layers)[0]
    activations, taught = _Parts(len(train_set)), _Parts(len(train_set))
    rng = np.random.default_rng([settings.seed, 2**31, number])
    for chunk in torch.split(train_set.tensors()[:, 0], CHUNK):
        changed = augment_all(chunk.numpy(), settings, number, rng)
        ready = torch.from_numpy(changed)[:, None].to(device_of(network), torch.float32) / 255
        prepared = network.input(ready).to(memory_format=torch.channels_last)
        activations.append(body(prepared).half().cpu())
        if objective.teachers:
            taught.append(objective.teach(ready).cpu())
    assert activations.joined is not None
    return _CachedActivations(activations.joined, taught.joined)


class _Parts:
    """Rows that come in parts, written into one tensor: to join them later would need them twice.

    Parameters
    ----------
    count
        Of the rows of all parts.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._filled = 0
        self.joined: Tensor | None = None

    def append(self, part: Tensor) -> None:
        """Add the next rows."""
        if self.joined is None:
            self.joined = part.new_empty((self._count, *part.shape[1:]))
        self.joined[self._filled : self._filled + len(part)] = part
        self._filled += len(part)

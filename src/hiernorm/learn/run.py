"""A training run in progress: everything that its state file holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hiernorm._deprecation import renamed_names
from hiernorm._files import write_atomically
from hiernorm.learn.batches import PatchSet
from hiernorm.learn.checkpoint import load_state, mean_weights, save_state, set_weights
from hiernorm.learn.devices import device_of, find_device
from hiernorm.learn.head import HeadActivations, train_head
from hiernorm.learn.network import PatchNetwork, make_network
from hiernorm.learn.rotate import rotate_network
from hiernorm.learn.settings import TrainingSettings
from hiernorm.progress import ProgressCallback

STATE = "state.pth"
BEGUN = "settings.json"
ROTATION_PATCHES = 30_000
"""Patches whose features give the directions of a rotation; a minute of one core."""

SUMS = ("loss", "positive", "negative", "seconds", "steps")
SAVED = ("epoch", "step", "sums", "history")


@dataclass
class TrainingRun:
    """A run between two steps.

    Attributes
    ----------
    settings, network, optimizer
        The settings, the network and its optimizer.
    epoch, step
        Epochs that are complete, and steps of the epoch in progress.
    sums
        Sums of loss, distances and seconds over those steps.
    history
        A record of each epoch.
    """

    settings: TrainingSettings
    network: PatchNetwork
    optimizer: torch.optim.Adam
    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        settings: TrainingSettings,
        train_set: PatchSet,
        progress: ProgressCallback | None = None,
        *,
        device: str = "cpu",
        activations: HeadActivations | None = None,
    ) -> TrainingRun:
        """Start a run: load or draw weights, rotate them and train the head if asked to.

        The training of the head calls ``progress`` and uses ``activations``. Every device starts
        from the same weights; see :func:`hiernorm.learn.devices.find_device` for their names.
        """
        place = find_device(device)
        torch.manual_seed(settings.seed)
        network = make_network(settings.architecture, settings.major, settings.alpha, settings.norm)
        if settings.init:
            set_weights(network, mean_weights(settings.init), ", ".join(settings.init))
        else:
            _initialize(network)
        if settings.rotate != "none":
            sample = train_set.sample(ROTATION_PATCHES)
            rotate_network(network, sample.tensors(), sample.points, settings.rotate)
        network.to(place)
        if settings.head_epochs:
            train_head(network, train_set, settings, progress, activations)
        return cls(settings, network, _make_optimizer(settings, network))

    @classmethod
    def load(cls, out: Path, *, device: str = "cpu") -> TrainingRun:
        """Continue a run where its state was saved, on the same device or on another."""
        place = find_device(device)
        state = load_state(out / STATE)
        missing = {*SAVED, "settings", "network", "optimizer"} - set(state)
        if missing:
            raise ValueError(f"{out / STATE} is no training state: it has no {missing.pop()!r}")
        settings = TrainingSettings.from_json(state["settings"])
        network = make_network(settings.architecture, settings.major, settings.alpha, settings.norm)
        set_weights(network, state["network"], out / STATE)
        network.to(place)
        optimizer = _make_optimizer(settings, network)
        optimizer.load_state_dict(state["optimizer"])
        return cls(settings, network, optimizer, **{name: state[name] for name in SAVED})

    def save(self, out: Path) -> None:
        """Write the state, whole or not at all."""
        state = {name: getattr(self, name) for name in SAVED}
        state |= {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        save_state(out / STATE, state | {"settings": self.settings.to_json()})

    @property
    def device(self) -> torch.device:
        """The device of the network, which batches must be on."""
        return device_of(self.network)

    @property
    def done(self) -> bool:
        """Whether all epochs are done, or the patience is exhausted."""
        losses = [merit(e) for e in self.history]
        patience = self.settings.patience
        plateaued = patience > 0 and len(losses) - 1 - np.argmin([*losses, np.inf]) >= patience
        return self.epoch >= self.settings.total_epochs or bool(plateaued)

    def note_step(self, loss: float, positive: float, negative: float, seconds: float) -> None:
        """Count a step that is done."""
        for name, value in zip(SUMS, (loss, positive, negative, seconds, 1), strict=True):
            self.sums[name] += value
        self.step += 1

    def note_epoch(self, validation_loss: float, development: dict[str, float]) -> bool:
        """Count an epoch that is done; return whether its network is the best so far."""
        means = self.means()
        self.epoch, self.step, self.sums = self.epoch + 1, 0, dict.fromkeys(SUMS, 0.0)
        return self._note(validation_loss, development, means)

    def note_start(self, validation_loss: float, development: dict[str, float]) -> bool:
        """Record the network that the run starts from, as epoch 0."""
        return self._note(validation_loss, development, {})

    def _note(
        self, validation_loss: float, development: dict[str, float], means: dict[str, float]
    ) -> bool:
        best = min(map(merit, self.history), default=np.inf)
        record = {"epoch": self.epoch, **means, "validation_loss": validation_loss}
        self.history.append(record | ({"development": development} if development else {}))
        return merit(self.history[-1]) < best

    def means(self) -> dict[str, float]:
        """Return the means of the epoch so far, and patches per second."""
        steps = self.sums["steps"]
        means = {name: self.sums[name] / steps for name in ("loss", "positive", "negative")}
        patches = steps * self.settings.batch * self.settings.patches_per_row
        return means | {"patches_per_second": patches / self.sums["seconds"]}


def note_begun(out: Path, settings: TrainingSettings) -> None:
    """Write the settings of a run, which has no state while its last layers are trained."""
    write_atomically(out / BEGUN, settings.to_json().encode())


def begun_settings(out: Path) -> TrainingSettings | None:
    """Settings of a run that was stopped before its first state, or None."""
    file = out / BEGUN
    if (out / STATE).exists() or not file.is_file():
        return None
    return TrainingSettings.from_json(file.read_text(encoding="utf-8"))


def merit(record: dict[str, Any]) -> float:
    """Return the criterion of the best epoch: FPR@95 on development scenes, or the loss.

    Lower is better. Scenes count by the geometric mean: a hard scene does not dominate the others.

    Examples
    --------
    >>> merit({"validation_loss": 0.5})
    0.5
    >>> round(merit({"validation_loss": 0.5, "development": {"a": 0.01, "b": 0.04}}), 3)
    0.02
    """
    if rates := record.get("development"):
        return float(np.exp(np.mean(np.log(np.maximum(list(rates.values()), 1e-6)))))
    return float(record["validation_loss"])


def _initialize(network: PatchNetwork) -> None:
    """Set random weights as HardNet does: orthogonal, of gain 0.6."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.orthogonal_(module.weight, gain=0.6)


def _make_optimizer(settings: TrainingSettings, network: PatchNetwork) -> torch.optim.Adam:
    """Return Adam with the learning rate of the settings."""
    return torch.optim.Adam(network.parameters(), lr=settings.learning_rate)


__getattr__ = renamed_names(__name__, {"Run": "hiernorm.learn.run:TrainingRun"})

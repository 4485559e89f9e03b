"""The training loop: steps that depend on seed, epoch and step alone, and a state that resumes."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from hiernorm.learn.batches import Batch, PatchSet, load_sets
from hiernorm.learn.checkpoint import (
    load_state,
    load_weights,
    save_state,
    save_weights,
    set_weights,
    write_atomically,
)
from hiernorm.learn.losses import Distances, compare_hardest, compare_random, distillation_loss
from hiernorm.learn.network import HNHardNet
from hiernorm.learn.rotate import rotate_network
from hiernorm.learn.settings import Settings

STATE = "state.pth"
MODEL = "model.safetensors"
LOG = "log.jsonl"
SUMS = ("loss", "positive", "negative", "seconds", "steps")


class Reporter(Protocol):
    """What hears of every step: a progress bar."""

    def step(self, epoch: int, step: int, steps: int, means: dict[str, float]) -> None:
        """Hear that a step is done; ``means`` are those of the epoch so far."""


@dataclass
class Run:
    """A run in progress: all that a checkpoint holds."""

    settings: Settings
    network: HNHardNet
    optimizer: torch.optim.Adam
    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether the schedule is over, or the validation loss has not fallen for long."""
        losses = [e["validation_loss"] for e in self.history]
        patience = self.settings.patience
        plateaued = patience > 0 and len(losses) - 1 - np.argmin([*losses, np.inf]) >= patience
        return self.epoch >= self.settings.total_epochs or bool(plateaued)

    def save(self, out: Path) -> None:
        """Write the state, whole or not at all."""
        state = {name: getattr(self, name) for name in ("epoch", "step", "sums", "history")}
        state |= {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        save_state(out / STATE, state | {"settings": self.settings.to_json()})

    @classmethod
    def start(cls, settings: Settings, train_set: PatchSet) -> Run:
        """Begin a run: weights as they are given, turned if that is asked for, or random."""
        torch.manual_seed(settings.seed)
        network = HNHardNet(settings.major, settings.alpha, settings.norm)
        if settings.init:
            set_weights(network, load_weights(settings.init), settings.init)
        else:
            initialize(network)
        if settings.rotate != "none":
            rotate_network(network, train_set.tensors(), train_set.points, settings.rotate)
        return cls(settings, network, make_optimizer(settings, network))

    @classmethod
    def load(cls, out: Path) -> Run:
        """Continue a run where its state was saved."""
        state = load_state(out / STATE)
        settings = Settings.from_json(state["settings"])
        network = HNHardNet(settings.major, settings.alpha, settings.norm)
        set_weights(network, state["network"], out / STATE)
        optimizer = make_optimizer(settings, network)
        optimizer.load_state_dict(state["optimizer"])
        kept = {name: state[name] for name in ("epoch", "step", "sums", "history")}
        return cls(settings, network, optimizer, **kept)


def train(run: Run, sets: tuple[PatchSet, PatchSet], out: Path, reporter: Reporter) -> bool:
    """Train until the run is done; return False if it was interrupted, its state saved.

    Writes into ``out``: ``state.pth`` after every epoch, ``model.safetensors`` whenever the
    validation loss is the lowest so far, and ``log.jsonl``.
    """
    settings, (train_set, validation_set) = run.settings, sets
    teacher = load_teacher(settings)
    steps = train_set.steps(settings.batch)
    with interrupts() as interrupted:
        while not run.done:
            set_mode(run.network, settings)
            while run.step < steps:
                started = time.perf_counter()
                seed_step(settings.seed, run.epoch, run.step)
                set_learning_rate(run, steps)
                batch = train_set.draw(settings, run.epoch, run.step)
                loss, distances = compute_loss(run.network, batch, settings, teacher)
                run.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                run.optimizer.step()
                values = (loss, distances.positive.mean(), distances.negative.mean())
                took = (time.perf_counter() - started, 1)
                for name, value in zip(SUMS, (*(v.item() for v in values), *took), strict=True):
                    run.sums[name] += value
                run.step += 1
                reporter.step(run.epoch, run.step, steps, epoch_means(run))
                if interrupted():
                    run.save(out)
                    return False
            finish_epoch(run, validation_set, teacher, out)
    return True


def finish_epoch(run: Run, validation_set: PatchSet, teacher: HNHardNet | None, out: Path) -> None:
    """Validate, log, and save; the model only if it is the best so far."""
    loss = validate(run.network, validation_set, run.settings, teacher)
    best = min((e["validation_loss"] for e in run.history), default=math.inf)
    run.history.append({"epoch": run.epoch + 1, **epoch_means(run), "validation_loss": loss})
    run.epoch, run.step, run.sums = run.epoch + 1, 0, dict.fromkeys(SUMS, 0.0)
    if loss < best:
        save_weights(out / MODEL, run.network)
    run.save(out)
    write_atomically(out / LOG, "".join(json.dumps(e) + "\n" for e in run.history).encode())


def compute_loss(
    network: HNHardNet, batch: Batch, settings: Settings, teacher: HNHardNet | None
) -> tuple[Tensor, Distances]:
    """Return the loss of a batch, and the distances behind it."""
    groups = [batch.anchor, batch.positive]
    if settings.loss == "triplet":
        groups.append(batch.negative)
    descriptors = network(torch.cat(groups)).chunk(len(groups))
    distances = compare(descriptors, batch.points, settings)
    loss = distances.margin_loss(settings.margin)
    if settings.major_weight:
        majors = [nn.functional.normalize(d[:, : settings.major]) for d in descriptors]
        on_major = compare(majors, batch.points, settings).margin_loss(settings.margin)
        loss = loss + settings.major_weight * on_major
    if teacher is not None:
        with torch.no_grad():
            taught = teacher(torch.cat(groups[:2])).chunk(2)
        pair = descriptors[0] @ descriptors[1].T, taught[0] @ taught[1].T
        loss = loss + settings.distill_weight * distillation_loss(*pair)
    return loss, distances


def compare(descriptors: Any, points: Tensor, settings: Settings) -> Distances:
    """Return the distances that the settings' loss is made of."""
    if settings.loss == "triplet":
        return compare_random(*descriptors)
    return compare_hardest(*descriptors, points)


@torch.no_grad()
def validate(
    network: HNHardNet, held: PatchSet, settings: Settings, teacher: HNHardNet | None
) -> float:
    """Return the mean loss on points held out, always of the same batches."""
    network.eval()
    losses = []
    for step in range(held.steps(settings.batch)):
        batch = held.draw(settings, 0, step, augment=False)
        losses.append(compute_loss(network, batch, settings, teacher)[0].item())
    return float(np.mean(losses))


def set_mode(network: HNHardNet, settings: Settings) -> None:
    """Switch to training; batch normalisation keeps its statistics if that is asked for."""
    network.train()
    if settings.freeze_statistics:
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()


def initialize(network: HNHardNet) -> None:
    """Set random weights as HardNet does: orthogonal, of gain 0.6."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.orthogonal_(module.weight, gain=0.6)


def make_optimizer(settings: Settings, network: HNHardNet) -> torch.optim.Adam:
    """Return the optimizer of the recipe."""
    return torch.optim.Adam(network.parameters(), lr=settings.learning_rate)


def set_learning_rate(run: Run, steps: int) -> None:
    """Set the learning rate of this step."""
    done = (run.epoch + run.step / steps) / run.settings.total_epochs
    factor = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    for group in run.optimizer.param_groups:
        group["lr"] = run.settings.learning_rate * factor[run.settings.decay]


def load_teacher(settings: Settings) -> HNHardNet | None:
    """Return the plain network whose similarities are to be kept, if any."""
    if not settings.distill_weight:
        return None
    teacher = HNHardNet(norm="l2")
    set_weights(teacher, load_weights(settings.teacher), settings.teacher)
    return teacher.eval()


def seed_step(seed: int, epoch: int, step: int) -> None:
    """Seed what torch draws in this step (dropout), so that a run may resume at any step."""
    torch.manual_seed(int(np.random.SeedSequence([seed, epoch, step]).generate_state(1)[0]))


def epoch_means(run: Run) -> dict[str, float]:
    """Return the means of the epoch so far, and patches per second."""
    steps = run.sums["steps"]
    means = {name: run.sums[name] / steps for name in ("loss", "positive", "negative")}
    rows = steps * run.settings.batch * (3 if run.settings.loss == "triplet" else 2)
    return means | {"patches_per_second": rows / run.sums["seconds"]}


@contextmanager
def interrupts() -> Iterator[Any]:
    """Turn Ctrl-C into a question that is asked between steps; a second Ctrl-C stops at once."""
    seen: list[int] = []

    def note(number: int, _: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)


__all__ = ["Reporter", "Run", "load_sets", "train"]

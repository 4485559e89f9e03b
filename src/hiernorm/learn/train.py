"""The training loop: steps that depend on seed, epoch and step alone, and a state that resumes."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import nn

from hiernorm._files import write_atomically
from hiernorm.learn.batches import PatchSet
from hiernorm.learn.checkpoint import save_weights
from hiernorm.learn.development import DevelopmentScene, load_development
from hiernorm.learn.network import PatchNetwork
from hiernorm.learn.objective import Objective
from hiernorm.learn.run import TrainingRun
from hiernorm.learn.settings import TrainingSettings

MODEL = "model.safetensors"
LOG = "log.jsonl"

SAVE_SECONDS = 180
"""Seconds between saves: the most that a killed run loses."""


class Reporter(Protocol):
    """An observer of the training, such as a progress bar."""

    def step(self, run: TrainingRun, steps: int) -> None:
        """Called after each step; an epoch has ``steps``."""

    def epoch(self, run: TrainingRun) -> None:
        """Called after each epoch."""


def train_network(
    run: TrainingRun, sets: tuple[PatchSet, PatchSet], out: Path, reporter: Reporter
) -> bool:
    """Train until the run is done; return False after Ctrl-C, with the state saved.

    Writes into ``out``: ``state.pth`` after every epoch and every few minutes,
    ``model.safetensors`` whenever the network is the best so far, and ``log.jsonl``. Best is the
    lowest validation loss or, where the settings name development scenes, the lowest FPR@95 there.

    Parameters
    ----------
    run
        From :meth:`TrainingRun.start` or, to resume, :meth:`TrainingRun.load`.
    sets
        Patches to train on and patches held out, from :func:`load_sets`.
    out
        A folder.
    reporter
        Called after every step and epoch.
    """
    train_set, held_out = sets
    objective = Objective(run.settings, run.device)
    steps = train_set.steps(run.settings.batch, run.settings.sampling)
    development = load_development(run.settings)
    with catch_interrupts() as interrupted:
        if not run.history:
            run.note_start(validate(run, held_out, objective), develop(run, development))
            save(run, out, model=True)
        saved = time.monotonic()
        while not run.done:
            set_mode(run.network, run.settings)
            while run.step < steps:
                take_step(run, train_set, objective, steps)
                reporter.step(run, steps)
                if interrupted():
                    run.save(out)
                    return False
                if time.monotonic() - saved > SAVE_SECONDS:
                    run.save(out)
                    saved = time.monotonic()
            loss = validate(run, held_out, objective)
            best = run.note_epoch(loss, develop(run, development))
            save(run, out, model=best)
            reporter.epoch(run)
    return True


def save(run: TrainingRun, out: Path, model: bool) -> None:
    """Write state and log, and the model if it is the best so far; each whole or not at all."""
    if model:
        save_weights(out / MODEL, run.network)
    run.save(out)
    log = "".join(json.dumps(record) + "\n" for record in run.history)
    write_atomically(out / LOG, log.encode())


def take_step(run: TrainingRun, train_set: PatchSet, objective: Objective, steps: int) -> None:
    """Draw the next batch and take one step of the optimizer."""
    started = time.perf_counter()
    seed = np.random.SeedSequence([run.settings.seed, run.epoch, run.step])
    torch.manual_seed(int(seed.generate_state(1)[0]))  # dropout depends on the step alone
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(run.settings, run.epoch + run.step / steps)
    batch = train_set.draw(run.settings, run.epoch, run.step).to(run.device)
    loss, distances = objective(run.network, batch)
    run.optimizer.zero_grad()
    torch.autograd.backward(loss)
    run.optimizer.step()
    run.note_step(
        loss.item(),
        distances.positive.mean().item(),
        distances.negative.mean().item(),
        time.perf_counter() - started,
    )


@torch.no_grad()
def validate(run: TrainingRun, held_out: PatchSet, objective: Objective) -> float:
    """Return the mean loss on points held out, always of the same batches."""
    run.network.eval()
    losses = []
    for step in range(held_out.steps(run.settings.batch, run.settings.sampling)):
        batch = held_out.draw(run.settings, 0, step, augment=False).to(run.device)
        losses.append(objective(run.network, batch)[0].item())
    return float(np.mean(losses))


def develop(run: TrainingRun, scenes: Sequence[DevelopmentScene]) -> dict[str, float]:
    """Return FPR@95 on each development scene."""
    run.network.eval()
    return {scene.scene: scene.measure(run.network) for scene in scenes}


def learning_rate(settings: TrainingSettings, epoch: float) -> float:
    """Return the learning rate after ``epoch`` epochs, which may be a fraction.

    Examples
    --------
    >>> learning_rate(TrainingSettings(data=("a",), decay="linear", epochs=4, learning_rate=0.5), 3)
    0.125
    """
    done = epoch / settings.total_epochs
    factors = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.learning_rate * factors[settings.decay]


def set_mode(network: PatchNetwork, settings: TrainingSettings) -> None:
    """Switch to training; batch normalisation keeps its statistics if that is asked for."""
    network.train()
    if settings.freeze_statistics:
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C came; a second Ctrl-C stops at once."""
    seen: list[int] = []

    def note(number: int, _: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)

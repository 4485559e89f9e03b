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
from hiernorm.learn.run import Run
from hiernorm.learn.settings import Settings

MODEL = "model.safetensors"
LOG = "log.jsonl"

SAVE_SECONDS = 180
"""A run that is killed loses no more than this."""


class Reporter(Protocol):
    """What hears of every step: a progress bar."""

    def step(self, run: Run, steps: int) -> None:
        """Hear that a step is done, of so many in an epoch."""

    def epoch(self, run: Run) -> None:
        """Hear that an epoch is done."""


def train_network(run: Run, sets: tuple[PatchSet, PatchSet], out: Path, reporter: Reporter) -> bool:
    """Train until the run is done; return False if Ctrl-C came first, its state saved.

    Writes into ``out``: ``state.pth`` after every epoch and every few minutes,
    ``model.safetensors`` whenever the network is the best so far, and ``log.jsonl``. Best is the
    lowest validation loss or, where the settings name development scenes, the lowest FPR@95 there.

    Parameters
    ----------
    run
        From :meth:`Run.start` or, to resume, :meth:`Run.load`.
    sets
        Patches to train on and patches held out, from :func:`load_sets`.
    out
        A folder.
    reporter
        Hears of every step.
    """
    train_set, held_out = sets
    objective = Objective(run.settings)
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


def save(run: Run, out: Path, model: bool) -> None:
    """Write state and log, and the model if it is the best so far; each whole or not at all."""
    if model:
        save_weights(out / MODEL, run.network)
    run.save(out)
    log = "".join(json.dumps(record) + "\n" for record in run.history)
    write_atomically(out / LOG, log.encode())


def take_step(run: Run, train_set: PatchSet, objective: Objective, steps: int) -> None:
    """Draw the next batch and learn from it."""
    started = time.perf_counter()
    seed = np.random.SeedSequence([run.settings.seed, run.epoch, run.step])
    torch.manual_seed(int(seed.generate_state(1)[0]))  # dropout, so that any step may resume
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(run.settings, run.epoch + run.step / steps)
    batch = train_set.draw(run.settings, run.epoch, run.step)
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
def validate(run: Run, held_out: PatchSet, objective: Objective) -> float:
    """Return the mean loss on points held out, always of the same batches."""
    run.network.eval()
    losses = [
        objective(run.network, held_out.draw(run.settings, 0, step, augment=False))[0].item()
        for step in range(held_out.steps(run.settings.batch, run.settings.sampling))
    ]
    return float(np.mean(losses))


def develop(run: Run, scenes: Sequence[DevelopmentScene]) -> dict[str, float]:
    """Return FPR@95 on each development scene."""
    run.network.eval()
    return {scene.name: scene.measure(run.network) for scene in scenes}


def learning_rate(settings: Settings, epoch: float) -> float:
    """Return the learning rate after so many epochs, the last of them in part.

    Examples
    --------
    >>> learning_rate(Settings(data=("a",), decay="linear", epochs=4, learning_rate=0.5), 3)
    0.125
    """
    done = epoch / settings.total_epochs
    factors = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.learning_rate * factors[settings.decay]


def set_mode(network: PatchNetwork, settings: Settings) -> None:
    """Switch to training; batch normalisation keeps its statistics if that is asked for."""
    network.train()
    if settings.freeze_statistics:
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a question to ask between steps; a second one stops at once."""
    seen: list[int] = []

    def note(number: int, _: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)

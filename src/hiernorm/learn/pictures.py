"""Pictures of a training run and of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiernorm.extras import import_extra
from hiernorm.learn.evaluate import Result

LOWEST_RATE = 1e-4


def draw_curves(history: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the losses and distances of each epoch into a PNG."""
    figure, (losses, distances) = make_figure(2)
    held_out = [e["validation_loss"] for e in history]
    losses.plot([e["epoch"] for e in history], held_out, label="points held out")
    history = [e for e in history if e["epoch"] > 0]
    epochs = [e["epoch"] for e in history]
    losses.plot(epochs, [e["loss"] for e in history], label="training")
    losses.set_ylabel("loss")
    distances.plot(epochs, [e["positive"] for e in history], label="to the positive")
    distances.plot(epochs, [e["negative"] for e in history], label="to the negative")
    distances.set_ylabel("mean distance in training")
    for axes in (losses, distances):
        axes.set_xlabel("epoch")
        axes.legend()
    figure.savefig(path, dpi=150)


def draw_rocs(results: Sequence[Result], path: Path) -> None:
    """Draw the ROC curves of each scene side by side into a PNG."""
    scenes = list(dict.fromkeys(r.scene for r in results))
    figure, panels = make_figure(len(scenes))
    for scene, axes in zip(scenes, panels, strict=True):
        for result in (r for r in results if r.scene == scene):
            false, true = result.curve
            axes.plot(false, true, label=f"{result.model} ({result.fpr95:.4f})")
        axes.axhline(0.95, color="grey", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlim=(LOWEST_RATE, 1), ylim=(0.8, 1.002), title=scene)
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
        axes.legend(loc="lower right", title="FPR@95", fontsize="small")
    figure.savefig(path, dpi=150)


def make_figure(panels: int) -> tuple[Any, Any]:
    """Return a figure that needs no display, and its axes side by side."""
    figure = import_extra("matplotlib.figure", extra="evaluate").Figure(
        figsize=(5.5 * panels, 4.5), layout="constrained"
    )
    return figure, figure.subplots(1, panels, squeeze=False)[0]

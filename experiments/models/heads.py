"""Train last layers from one start without certain places, and measure them on those places."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from experiments.harness.command import (
    FOLDER,
    Experiment,
    out_option,
    results_folder,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.models.measured import KINDS, find_scenes, open_tracks, split_name
from experiments.models.options import (
    few_rounds_option,
    noise_option,
    places_option,
    threads_option,
)
from experiments.models.recipes import COMMON, RECIPES
from hiernorm.array_types import Int64Array
from hiernorm.learn import TrainingSettings, load_describer, load_sets
from hiernorm.learn.batches import PatchSet
from hiernorm.learn.checkpoint import load_network, mean_weights, save_weights, set_weights
from hiernorm.learn.evaluate import evaluate_scenes
from hiernorm.learn.head import HeadActivations, train_head
from hiernorm.learn.network import PatchNetwork, make_network
from hiernorm.learn.objective import Objective
from hiernorm.learn.rotate import rotate_network
from hiernorm.learn.run import ROTATION_PATCHES


class SharedActivations(HeadActivations):
    """Activations of all places from one start; a run reads the rows of its own places.

    They are computed when a run first asks for them, and never copied: all patches of nine places
    take 4 GB for each variant. The changes of the patches are those of one seed. Runs with other
    seeds draw other batches.
    """

    def __init__(self, train_set: PatchSet, settings: TrainingSettings) -> None:
        super().__init__()
        self._train_set = train_set
        self._settings = settings
        self.rows = np.arange(len(train_set))

    @cached_property
    def _all(self) -> list[Any]:
        network = _load_start(self._settings)
        objective = Objective(self._settings)
        found = []
        for number in range(self._settings.head_views):
            variant = super().get(network, self._train_set, self._settings, objective, number)
            found.append(variant)
            click.echo(f"activations {number + 1} of {self._settings.head_views}", err=True)
        return found

    def get(self, *arguments: Any) -> Any:
        """Return the rows of variant ``number``, the last argument."""
        return replace(self._all[arguments[-1]], rows=torch.from_numpy(self.rows))


class Heads:
    """Networks that differ in their last layers, kept as files.

    Parameters
    ----------
    settings
        The common settings: scenes, start and teachers.
    rotate
        Whether the start is a plain network, to be turned by LDA.
    folder
        Folder of the weights, one folder for each group of places that is left out.
    kinds
        What is trained on, of :data:`KINDS`. The points held out do not depend on it.
    unused
        Places that no run trains on: their activations are not computed.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        rotate: bool,
        folder: Path,
        kinds: Sequence[str],
        unused: Set[str] = frozenset(),
    ) -> None:
        self._settings = settings
        self._rotate = rotate
        self._folder = folder
        parts = [split_name(path) for path in settings.data]
        chosen = [i for i, (p, kind) in enumerate(parts) if kind in kinds and p not in unused]
        train_set = load_sets(settings)[0]
        rows = np.flatnonzero(np.isin(train_set.places, chosen))
        self._all = _take(train_set, rows).sample(settings.head_patches)
        self._activations = SharedActivations(self._all, settings)

    def make(self, left_out: Sequence[str], recipes: Sequence[str]) -> Path:
        """Train by every recipe without some places; return the folder of the weights."""
        folder = self._folder / ("without-" + "-".join(left_out) if left_out else "all")
        places = [split_name(path)[0] for path in self._settings.data]
        scenes = [i for i, place in enumerate(places) if place in left_out]
        rows = np.flatnonzero(~np.isin(self._all.places, scenes))
        train_set = _take(self._all, rows)
        self._activations.rows = rows
        start = folder / "start.safetensors"
        if not start.exists():
            self._start(train_set, start)
        for name in recipes:
            if not (folder / f"{name}.safetensors").exists():
                self._train(train_set, start, name, folder)
        return folder

    def _start(self, train_set: PatchSet, file: Path) -> None:
        """Write the network that all recipes start from."""
        network = _load_start(self._settings)
        if self._rotate:
            sample = train_set.sample(ROTATION_PATCHES)
            rotate_network(network, sample.tensors(), sample.points, "lda")
        file.parent.mkdir(parents=True, exist_ok=True)
        save_weights(file, network)

    def _train(self, train_set: PatchSet, start: Path, name: str, folder: Path) -> None:
        changes = {**RECIPES[name], "init": (str(start),), "head_patches": len(train_set)}
        settings = replace(self._settings, **changes)
        network = _load_start(settings)
        train_head(network, train_set, settings, activations=self._activations)
        save_weights(folder / f"{name}.safetensors", network)
        click.echo(f"trained {folder.name}/{name}", err=True)


def save_mean(folder: Path, name: str, members: Sequence[str], settings: TrainingSettings) -> None:
    """Write the mean of the members' weights beside them."""
    files = tuple(str(folder / f"{member}.safetensors") for member in members)
    save_weights(folder / f"{name}.safetensors", _load_start(replace(settings, init=files)))


def _load_start(settings: TrainingSettings) -> PatchNetwork:
    """Return the network that the settings start from, or the mean of several."""
    network = make_network(settings.architecture, settings.major, settings.alpha, settings.norm)
    set_weights(network, mean_weights(settings.init), ", ".join(settings.init))
    return network.eval()


def _take(patches: PatchSet, rows: Int64Array) -> PatchSet:
    """Return some patches, with all patches of their points."""
    tensors = patches.tensors()[:, 0].numpy()
    return PatchSet(tensors[rows], patches.points[rows], patches.places[rows])


@click.command("models.heads", cls=Experiment)
@places_option
@click.option("--start", required=True, help="Weights of the network to start from.")
@click.option("--rotate", is_flag=True, help="The start is plain: turn it by LDA.")
@click.option("--major", default=16, show_default=True, help="With --rotate: K.")
@click.option("--alpha", default=1 / 8, show_default=True, help="With --rotate.")
@click.option("--teacher", "teachers", multiple=True, help="Plain networks.")
@click.option("--left-out", multiple=True, help="Places, by commas; each is a group of runs.")
@click.option("--recipe", "recipes", multiple=True, type=click.Choice(list(RECIPES)))
@click.option("--mean", "means", multiple=True, help="NAME=RECIPE+RECIPE: the mean of weights.")
@click.option("--against", multiple=True, help="As `hiernorm evaluate --against`.")
@click.option("--epochs", default=4, show_default=True, help="Epochs over each variant.")
@click.option("--views", default=2, show_default=True, help="Variants of every patch.")
@click.option("--patches", default=70_000, show_default=True, help="Patches of all places.")
@click.option("--layers", default=2, show_default=True, help="Last layers that are trained.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS)
@noise_option
@few_rounds_option
@threads_option
@click.option("--weights", type=FOLDER, required=True, help="Folder of the trained weights.")
@smoke_option
@out_option
def main(
    scenes: Path,
    start: str,
    rotate: bool,
    major: int,
    alpha: float,
    teachers: tuple[str, ...],
    left_out: tuple[str, ...],
    recipes: tuple[str, ...],
    means: tuple[str, ...],
    against: tuple[str, ...],
    epochs: int,
    views: int,
    patches: int,
    layers: int,
    kinds: tuple[str, ...],
    noise: bool,
    rounds: int,
    threads: int,
    weights: Path,
    smoke: bool,
    out: Path | None,
) -> None:
    """Train the last layers by several recipes, and measure them where they were not trained.

    Weights that are there already are not trained again.
    """
    folder = results_folder("models", out, smoke)
    torch.set_num_threads(threads)
    common = {
        **COMMON,
        "head_epochs": epochs,
        "head_views": views,
        "head_patches": patches,
        "head_layers": layers,
    }
    if smoke:
        common |= {"head_epochs": 1, "head_views": 1, "batch": 8}
    if rotate:
        common |= {"major": major, "alpha": alpha}
    else:
        begun = load_network(start)
        common |= {"norm": begun.norm, "major": begun.major, "alpha": begun.alpha}
    settings = TrainingSettings(data=find_scenes(scenes), init=(start,), teacher=teachers, **common)
    parameters = {
        "epochs": epochs,
        "views": views,
        "patches": patches,
        "layers": layers,
        "recipes": RECIPES,
        "noise": noise,
        "kinds": kinds,
    }
    recorder = Recorder("models.heads", settings.seed, parameters)
    groups = [[place for place in group.split(",") if place] for group in left_out or ("",)]
    unused = frozenset.intersection(*map(frozenset, groups))
    heads = Heads(settings, rotate, weights, kinds, unused)
    quality: list[dict[str, Any]] = []
    for places in groups:
        made = heads.make(places, recipes)
        names = [*(["start"] if rotate else []), *recipes]
        for mean in means:
            name, _, members = mean.partition("=")
            save_mean(made, name, members.split("+"), settings)
            names.append(name)
        files = [str(made / f"{name}.safetensors") for name in names]
        opened = open_tracks(scenes, places, noise)
        loaded = [load_describer(name, threads=threads) for name in (*against, *files)]
        for result in evaluate_scenes(opened, loaded, rounds):
            quality.append({**asdict(result), "left_out": places})
            del quality[-1]["curve"]
            click.echo(f"{result.scene} {result.model} {result.fpr95:.4f} {result.phase2}")
        recorder.write(folder / "heads.json", {"quality": quality})
    click.echo(f"{folder / 'heads.json'}")


if __name__ == "__main__":
    main()

"""The networks under test: the plain baseline and its HN variants, made by one of three recipes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.harness.patches import Backbone, scene_source
from experiments.harness.points import Point, point_name
from experiments.reproduce.options import Options
from hiernorm._files import write_atomically
from hiernorm.learn.batches import load_sets
from hiernorm.learn.checkpoint import load_network, save_weights
from hiernorm.learn.describers import PatchDescriptors
from hiernorm.learn.head import HeadActivations
from hiernorm.learn.network import PatchNetwork
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.plain import load_plain
from hiernorm.learn.rotate import RIDGE, separating_directions
from hiernorm.learn.run import STATE, TrainingRun
from hiernorm.learn.settings import TrainingSettings
from hiernorm.learn.train import LOG, MODEL, train_network
from hiernorm.normalize import normalize
from hiernorm.reference import Float32Array, Float64Array, canonical_norm


@dataclass(frozen=True)
class Variant:
    """A network with a normalisation: features of a backbone, turned, then normalised.

    Attributes
    ----------
    name
        For example ``K16-a1/8``; ``plain`` for the baseline.
    backbone
        The network up to its features.
    point
        K and alpha; None for plain unit vectors.
    turn : (128, 128) float64 or None
        A linear map of the features: what turning the last layer amounts to.
    """

    name: str
    backbone: Backbone
    point: Point | None
    turn: Float64Array | None = None

    def describe(self, features: Float32Array) -> PatchDescriptors:
        """Turn and normalise features ``(n, 128)`` of the backbone."""
        if self.turn is not None:
            features = (features.astype(np.float64) @ self.turn.T).astype(np.float32)
        if self.point is None:
            norms = canonical_norm(features)[:, np.newaxis]
            units = (features.astype(np.float64) / np.maximum(norms, 1e-12)).astype(np.float32)
            return PatchDescriptors(units, features)
        major, alpha = self.point
        return PatchDescriptors(normalize(features, major, alpha), features, major, alpha)


TUNED: dict[str, Any] = {
    "rotate": "lda",
    "freeze_statistics": True,
    "loss": "hardest",
    "batch": 512,
    "patience": 0,
    "augment": ("flips", "turns", "frames", "light"),
    "sampling": "points",
    "fpr_weight": 3.3,
    "phase2_weight": 1.0,
    "distill_weight": 3.3,
    "head_layers": 2,
    "head_patches": 40_000,
    "head_learning_rate": 5e-4,
}
"""The recipe that fits a small machine: from the turned baseline, mostly for a low FPR@95 of the
batch on the similarity that search uses and for a small share left to Phase 2, the baseline as
teacher. The last two layers are trained, on activations that all variants share; they have nine
tenths of the weights. docs/notes/2026-11-rate.md tells why."""


class Variants:
    """Makes the variants of a reproduction, each when it is first asked for.

    Parameters
    ----------
    options
        Scenes, baseline and recipe.
    say
        Hears of every step of training.
    """

    def __init__(self, options: Options, say: Callable[[str], None] = lambda doing: None) -> None:
        self._options = options
        self._say = say
        self._folder = options.out / "variants"
        self._cache = options.out / "cache"
        self._backbones: dict[Path, Backbone] = {}
        self._turns: dict[int, Float64Array] = {}
        self._trained: dict[str, Variant] = {}
        self._activations = HeadActivations()

    @cached_property
    def plain(self) -> Variant:
        """The baseline: unit vectors."""
        weights = self._folder / "plain" / MODEL
        network = load_plain(self._options.baseline)
        if not isinstance(network, PatchNetwork):
            raise ValueError(f"{self._options.baseline} cannot be trained on: kornia's TFeat")
        save_weights(weights, network)
        return Variant("plain", self._backbone(weights), None)

    def posthoc(self, point: Point) -> Variant:
        """HN on the features of the baseline as they are."""
        return Variant(f"posthoc-{point_name(point)}", self.plain.backbone, point)

    def make(self, point: Point) -> Variant:
        """The HN variant of the chosen recipe."""
        if self._options.recipe == "turned":
            return self._turn(point)
        if self._options.recipe == "tuned":
            return self.train(point_name(point), point, **self._tuned())
        return self.train(point_name(point), point)

    def _tuned(self) -> dict[str, Any]:
        """Changes to the paper's recipe that make it fit: see :data:`TUNED`."""
        options = self._options
        scenes = (options.train, *options.more_train)
        return {
            **TUNED,
            "data": tuple(str(options.folder_of(scene) / scene) for scene in scenes),
            "teacher": (str(self.plain.backbone.weights),),
            "epochs": 0,
            "head_epochs": options.size.tuned_epochs,
            "head_views": options.size.head_views,
            "places_per_batch": 2 if len(scenes) > 2 else 0,
        }

    def train(self, name: str, point: Point, **changes: Any) -> Variant:
        """Train a variant from the baseline, or finish a training that was interrupted.

        ``changes`` are to the settings of the paper's recipe.
        """
        if name not in self._trained:
            self._trained[name] = self._train(name, point, changes)
        return self._trained[name]

    def _train(self, name: str, point: Point, changes: dict[str, Any]) -> Variant:
        major, alpha = point
        out = self._folder / name.replace("/", "_")
        settings = TrainingSettings(
            data=(str(self._options.folder_of(self._options.train) / self._options.train),),
            architecture=load_network(self.plain.backbone.weights).architecture,
            major=major,
            alpha=alpha,
            init=(str(self.plain.backbone.weights),),
            epochs=self._options.size.epochs,
            seed=self._options.seed,
        )
        settings = replace(settings, **changes)
        torch.set_num_threads(self._options.threads)
        sets = load_sets(settings)
        if self._options.force or not (out / STATE).exists():
            self._say(f"training {name}: last layers")
            run = TrainingRun.start(settings, sets[0], activations=self._activations)
        else:
            run = TrainingRun.load(out)
            # The report's folder may have moved; all else must be as it would be now.
            moved = {name: getattr(settings, name) for name in ("data", "init", "teacher")}
            if replace(run.settings, **moved) != settings:
                raise ValueError(
                    f"{out} has a training of other settings: remove it, choose another --out, or "
                    "repeat everything with --force"
                )
        if not train_network(run, sets, out, _Teller(name, self._say)):
            raise KeyboardInterrupt
        return Variant(name, self._backbone(out / MODEL), point)

    def _turn(self, point: Point) -> Variant:
        """Turn the baseline by the directions that separate the training scene's points."""
        major, _ = point
        name = point_name(point)
        if major not in self._turns:
            train = self._options.train
            scene = PhotoTour(self._options.folder_of(train), train)
            features = self.plain.backbone.features(scene_source(scene)).astype(np.float64)
            units = features / np.linalg.norm(features, axis=1, keepdims=True)
            self._turns[major] = separating_directions(units, scene.points, major)
        variant = Variant(name, self.plain.backbone, point, self._turns[major])
        record = {"recipe": "turned", "rotate": "lda", "ridge": RIDGE, "major": major}
        log = self._folder / name.replace("/", "_") / LOG
        write_atomically(log, (json.dumps({**record, "alpha": point[1]}) + "\n").encode())
        return variant

    def read_log(self, name: str) -> list[dict[str, Any]]:
        """The records of a variant's log."""
        text = (self._folder / name.replace("/", "_") / LOG).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def _backbone(self, weights: Path) -> Backbone:
        if weights not in self._backbones:
            self._backbones[weights] = Backbone(weights, self._cache, self._options.threads)
        return self._backbones[weights]


class _Teller:
    """Tells how far a training is."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name = name
        self._say = say

    def step(self, run: TrainingRun, steps: int) -> None:
        """Tell of a step."""
        epochs = run.settings.total_epochs
        doing = f"epoch {run.epoch + 1} of at most {epochs}, step {run.step:,} of {steps:,}"
        self._say(f"training {self._name}: {doing}")

    def epoch(self, run: TrainingRun) -> None:
        """Hear of an epoch; its log has it."""

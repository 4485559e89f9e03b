"""The settings of a training run; the defaults are the paper's."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from hiernorm._deprecation import renamed_names
from hiernorm.learn.network import ARCHITECTURES, NORMS

LOSSES = ("triplet", "hardest")
DECAYS = ("none", "linear", "cosine")
ROTATIONS = ("none", "pca", "lda")
AUGMENTATIONS = ("flips", "turns", "shifts", "frames", "light")
SAMPLINGS = ("patches", "points")

PAPER_EPOCHS = {16: 30, 8: 10}
"""Epochs of the paper's two settings, by K; any other K gets the longer schedule."""


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run. The defaults are the paper's.

    Attributes
    ----------
    data
        Paths of scenes: folders or zips.
    architecture, norm, major, alpha
        Parameters of the network, see :class:`hiernorm.learn.HNHardNet`. Architectures are
        ``"hardnet"``, ``"hynet"`` and ``"tfeat"``.
    init
        Weights to start from: the mean of all that are named, or random weights if none is.
    loss
        ``"triplet"`` with a random negative, or ``"hardest"`` in the batch (HardNet's own).
    fpr_weight
        Weight of the logarithm of the batch's FPR@95, added to the loss. The hardest negative asks
        more of a small major than it can give; this asks for what is measured.
    margin, learning_rate, decay, batch
        Margin of the loss, learning rate of Adam, its decay to zero, and pairs per batch.
    epochs
        Maximum epochs; None means the paper's number for this ``major``.
    patience
        Stop after this many epochs without a lower validation loss; 0 means never.
    augment
        Any of flips, turns (by quarters), shifts (of up to ``shift`` pixels of 64), frames (the
        noise of a detector: position, scale and orientation) and light (gamma, blur, noise). Both
        patches of a pair get the same flip and turn. The rest is drawn for each patch.
    sampling, places_per_batch
        ``"patches"``: every patch is an anchor once per epoch. ``"points"``: each batch has the
        same number of points of each of ``places_per_batch`` scenes (0 means all scenes). Scenes
        are drawn with a weight of the square root of their points. An epoch has one pair per point.
    validation
        The share of points held out.
    rotate
        Rotate the last layer before training so that the leading directions are the major:
        ``"pca"`` of the features, or ``"lda"``, the directions that separate points best.
    major_weight
        Weight of the same loss on the major alone, added to that of the whole descriptor.
    spread_weight
        Weight of the spread of the majors over their sphere (global orthogonal regularisation).
        More of it makes search read less and costs some quality.
    phase2_weight
        Weight of the logarithm of the share of the batch that Phase 2 of a search evaluates. It
        asks of the majors what a search needs, where the spread asks it of all pairs of majors.
    second_order_weight
        Weight of SOSNet's second-order similarity: the distances among anchors must equal those
        among their positives.
    teacher, distill_weight
        Weights of plain networks whose distances are distilled (the mean of several), and the
        weight of the distillation loss.
    development
        Paths of scenes outside the training. The best epoch is selected by FPR@95 on them.
    freeze_statistics
        Keep the batch-normalisation statistics of ``init``. A rotation needs this: its scales are
        stored in them.
    head_epochs, head_layers, head_views, head_patches, head_learning_rate
        Training of the last layers alone before the whole network: epochs over each variant,
        number of convolutions (1 to 3), variants of every patch, maximum patches (as many of each
        scene), and learning rate, which falls to zero.
    seed
        Seed of everything random.
    """

    data: tuple[str, ...]
    architecture: str = "hardnet"
    norm: str = "hn"
    major: int = 16
    alpha: float = 1 / 8
    init: tuple[str, ...] = ()
    loss: str = "triplet"
    fpr_weight: float = 0.0
    margin: float = 1.0
    learning_rate: float = 1e-4
    decay: str = "none"
    batch: int = 32
    epochs: int | None = None
    patience: int = 5
    augment: tuple[str, ...] = ()
    shift: int = 2
    sampling: str = "patches"
    places_per_batch: int = 0
    development: tuple[str, ...] = ()
    validation: float = 0.1
    rotate: str = "none"
    major_weight: float = 0.0
    spread_weight: float = 0.0
    phase2_weight: float = 0.0
    second_order_weight: float = 0.0
    teacher: tuple[str, ...] = ()
    distill_weight: float = 0.0
    freeze_statistics: bool = False
    head_epochs: int = 0
    head_layers: int = 1
    head_views: int = 4
    head_patches: int = 100_000
    head_learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        for name in ("init", "teacher"):  # a single name may be given as a string
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, (value,) if value else ())
        if not self.data:
            raise ValueError("data must name at least one scene")
        choices = (
            ("architecture", ARCHITECTURES),
            ("norm", NORMS),
            ("loss", LOSSES),
            ("decay", DECAYS),
            ("rotate", ROTATIONS),
            ("sampling", SAMPLINGS),
        )
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}"
                )
        if unknown := set(self.augment) - set(AUGMENTATIONS):
            raise ValueError(f"augment takes {', '.join(AUGMENTATIONS)}, got {unknown.pop()!r}")
        if self.batch < 2:
            raise ValueError(f"batch must be at least 2 pairs, got {self.batch}")
        if not 0 < self.validation < 1:
            raise ValueError(f"validation must be a share between 0 and 1, got {self.validation}")
        if self.places_per_batch and self.sampling != "points":
            raise ValueError("places_per_batch is for sampling 'points'")
        if self.places_per_batch < 0:
            raise ValueError(f"places_per_batch must be 0 or more, got {self.places_per_batch}")
        if not 1 <= self.head_layers <= 3:
            raise ValueError(f"head_layers must be 1, 2 or 3, got {self.head_layers}")
        if self.distill_weight and not self.teacher:
            raise ValueError("distill_weight needs a teacher")
        on_majors = self.major_weight or self.spread_weight or self.phase2_weight
        if self.norm == "l2" and (self.rotate != "none" or on_majors):
            raise ValueError(
                "rotate, major_weight, spread_weight and phase2_weight are for norm 'hn': "
                "'l2' has no major"
            )

    @property
    def total_epochs(self) -> int:
        """The epochs of the schedule."""
        if self.epochs is not None:
            return self.epochs
        return PAPER_EPOCHS.get(self.major, max(PAPER_EPOCHS.values()))

    @property
    def patches_per_row(self) -> int:
        """Patches described per row of a batch: anchor, positive, and a negative if it is drawn."""
        return 3 if self.loss == "triplet" else 2

    def to_json(self) -> str:
        """Return the record as JSON, to be read by :meth:`from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TrainingSettings:
        """Return the record that :meth:`to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        names = {f.name for f in fields(cls)}
        kept: dict[str, Any] = {k: v for k, v in values.items() if k in names}
        for name in ("data", "augment", "development"):
            kept[name] = tuple(kept.get(name, ()))
        for name in ("init", "teacher"):
            value = kept.get(name, ())
            kept[name] = value if isinstance(value, str) else tuple(value)
        return cls(**kept)


__getattr__ = renamed_names(__name__, {"Settings": "hiernorm.learn.settings:TrainingSettings"})

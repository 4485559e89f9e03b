"""What the user asked a reproduction to do, and what of it a finished run depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hiernorm.reproduce.sizes import Size

RECIPES = ("paper", "turned")
"""How HN variants are made from the baseline.

paper    fine-tuned as in the paper's Section 4: hours
turned   the last layer turned so that LDA's directions lead, no training: seconds
"""

BASELINE = "hardnet"
"""The plain network that ships with the package."""


@dataclass(frozen=True)
class Options:
    """A reproduction.

    Attributes
    ----------
    data
        The folder of the scenes (folders or zips) and, in ``photos/<scene>/``, of photos.
    train, tests
        Names of the scene to train on and of the two to test on.
    out
        Where the report goes, with its runs and its cache.
    recipe
        One of :data:`RECIPES`.
    baseline
        Weights of the plain network: :data:`BASELINE`, a file, or an official name.
    size
        How much is measured.
    seed, threads
        Of everything drawn; of networks and training. Searches are timed with one thread.
    force
        Repeat runs that are finished.
    """

    data: Path
    train: str
    tests: tuple[str, str]
    out: Path
    recipe: str
    size: Size
    baseline: str = BASELINE
    seed: int = 0
    threads: int = 1
    force: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if self.recipe not in RECIPES:
            raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {self.recipe!r}")
        if len({self.train, *self.tests}) < 3:
            raise ValueError(
                f"expected a training scene and two others to test on, got {self.train} and "
                f"{', '.join(self.tests)}"
            )

    def settings(self) -> dict[str, Any]:
        """What a result depends on: a finished run of other settings is not taken for this one."""
        return {
            "train": self.train,
            "tests": list(self.tests),
            "recipe": self.recipe,
            "baseline": Path(self.baseline).name,
            "size": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in asdict(self.size).items()
            },
            "seed": self.seed,
        }

"""What a reproduction is asked to do: scenes, recipe and size; and the scenes of a smoke run."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.harness.timing import Effort
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import SceneSettings, make_scene

RECIPES = ("paper", "turned", "tuned")
"""How HN variants are made from the baseline.

paper    fine-tuned as in the paper's Section 4: hours
turned   the last layer turned so that LDA's directions lead, no training: seconds
tuned    turned, then the last two layers fine-tuned on all training scenes, the baseline as
         teacher: minutes each
"""

BASELINE = "hardnet"
"""The plain network that ships with the package."""

SMOKE_SCENES = ("one", "two", "three")
"""Names: one to train on, two to test on."""

SCENE_SETTINGS = SceneSettings(points=30, views=4, pairs=400)


@dataclass(frozen=True)
class Size:
    """The numbers of a reproduction.

    Attributes
    ----------
    name
        For the report.
    entries
        Of the databases of Tables 2 and 3.
    graph_entries
        Of the databases of Table 4; the last is past the paper.
    section_entries
        Of the databases of Section 3 and of the future work.
    rebuild_entries
        Of the database whose graphs are built again and again to see whether they agree.
    queries, runs
        Of every timing: as in the paper, 200 queries and 10 runs.
    more_queries
        At most so many where nothing is timed.
    seconds, slow_seconds
        Of one method in one run, and in all runs: a slow method searches fewer queries per run,
        and from run to run the queries move on.
    rounds
        Of the bootstrap of FPR@95.
    epochs
        Of training; None means the paper's.
    tuned_epochs
        Of the recipe ``"tuned"``, over each view: as many pairs each as there are points.
    batches
        Pairs per batch of the future work's training with hardest negatives.
    head_epochs, head_views
        Of that training where the recipe changes the last layer alone. Views are those of the
        recipe ``"tuned"`` too.
    """

    name: str
    entries: int = 500_000
    graph_entries: tuple[int, ...] = (1_000, 5_000, 99_000, 500_000)
    section_entries: int = 99_000
    rebuild_entries: int = 20_000
    queries: int = 200
    runs: int = 10
    more_queries: int = 1_000
    seconds: float = 1.0
    slow_seconds: float = 20.0
    rounds: int = 1_000
    epochs: int | None = None
    tuned_epochs: int = 4
    batches: tuple[int, ...] = (32, 256)
    head_epochs: int = 2
    head_views: int = 2

    def within(self, seconds: float) -> Size:
        """The same with another time for one method in one run.

        Examples
        --------
        >>> FULL.within(0.5).slow_seconds
        10.0
        """
        return replace(self, seconds=seconds, slow_seconds=SLOW * seconds)

    @property
    def effort(self) -> Effort:
        """The same for what is timed."""
        return Effort(self.runs, self.seconds, self.slow_seconds)


SLOW = 20
"""A method may take so many times the seconds of one run in all runs together."""

FULL = Size("full")
SMOKE = Size(
    "smoke",
    entries=3_000,
    graph_entries=(500, 1_500),
    section_entries=1_500,
    rebuild_entries=500,
    queries=40,
    runs=2,
    more_queries=60,
    seconds=0.005,
    slow_seconds=0.05,
    rounds=50,
    epochs=1,
    tuned_epochs=1,
    batches=(8, 32),
    head_epochs=1,
    head_views=1,
)


@dataclass(frozen=True)
class Options:
    """A reproduction.

    Attributes
    ----------
    data
        The folder of the scenes (folders or zips) and, in ``photos/<scene>/``, of photos.
    train, tests
        Names of the scene to train on and of the two to test on.
    more_train
        Further scenes to train on, of the recipe ``"tuned"`` only.
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
    train_data
        The folder of the scenes to train on, if it is not ``data``.
    """

    data: Path
    train: str
    tests: tuple[str, str]
    out: Path
    recipe: str
    size: Size
    more_train: tuple[str, ...] = ()
    baseline: str = BASELINE
    seed: int = 0
    threads: int = 1
    force: bool = False
    train_data: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if self.recipe not in RECIPES:
            raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {self.recipe!r}")
        if self.more_train and self.recipe != "tuned":
            raise ValueError(f"recipe {self.recipe!r} trains on one scene, got {self.more_train}")
        if set(self.more_train) & set(self.tests):
            raise ValueError(f"{', '.join(self.tests)} are to test on, not to train on")
        if len({self.train, *self.tests}) < 3:
            raise ValueError(
                f"expected a training scene and two others to test on, got {self.train} and "
                f"{', '.join(self.tests)}"
            )

    def folder_of(self, scene: str) -> Path:
        """Return the folder that a scene is in."""
        if self.train_data is not None and scene in (self.train, *self.more_train):
            return self.train_data
        return self.data

    def settings(self) -> dict[str, Any]:
        """What a result depends on: a finished run of other settings is not taken for this one."""
        return {
            "train": self.train,
            **({"more_train": list(self.more_train)} if self.more_train else {}),
            "tests": list(self.tests),
            "recipe": self.recipe,
            "baseline": Path(self.baseline).name,
            "size": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in asdict(self.size).items()
            },
            "seed": self.seed,
        }


def make_scenes(root: Path) -> None:
    """Make the scenes and their photos below ``root``, unless they are there.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> make_scenes(root)
    >>> sorted(file.name for file in root.iterdir())
    ['one.zip', 'photos', 'three.zip', 'two.zip']
    """
    photos = embedded_photos()
    for number, scene in enumerate(SMOKE_SCENES):
        chosen = photos[number :: len(SMOKE_SCENES)]
        folder = root / "photos" / scene
        folder.mkdir(parents=True, exist_ok=True)
        for photo in chosen:
            shutil.copyfile(photo, folder / photo.name)
        if not (root / f"{scene}.zip").exists():
            make_scene(chosen, root / f"{scene}.zip", SCENE_SETTINGS)

"""The plan of the record: every experiment whose result a page shows, the most important first."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from experiments.models.places import PLACES


@dataclass(frozen=True)
class Step:
    """One command of the record.

    Attributes
    ----------
    name
        As `--only` says it.
    module
        Of the command, below `experiments`.
    arguments
        Of the command; ``{data}`` and ``{work}`` stand for folders. `--out` is added where the step
        has results.
    results
        Files that pages show, in the results of the study or all in one folder there.
    minutes
        How long it takes on two cores, until a run has told.
    needs
        Steps that must be finished before; ``"data"``: scenes and photos.
    timing
        Whether times are measured, which needs a quiet machine.
    alone
        Whether all its processes are its own children, so that the load of others is known.
    smoke
        Arguments that make it small.
    """

    name: str
    module: str
    arguments: str = ""
    results: tuple[str, ...] = ()
    minutes: float = 5.0
    needs: tuple[str, ...] = ()
    timing: bool = True
    alone: bool = True
    smoke: str = "--smoke"

    @property
    def study(self) -> str:
        """The folder below `experiments`."""
        return self.module.partition(".")[0]

    @property
    def prepares(self) -> bool:
        """Whether it makes what other steps need, and no result."""
        return not self.results


def _features(model: str) -> Step:
    return Step(
        f"features-{model}",
        "growth.features",
        f"--data {{data}} --model {model} --queries 2000 --keypoints 5000 --threads 2 "
        f"--out {{work}}/{model}",
        minutes=15,
        needs=("data",),
        timing=False,
        smoke="--entries 600 --queries 60 --keypoints 60",
    )


def _graphs(of: str, arguments: str, minutes: float, *needs: str) -> Step:
    """Builds the graphs that a timing of the same arguments needs, beside any load."""
    return Step(
        f"graphs-{of}",
        of,
        f"{arguments} --graphs {{work}}/graphs --only-graphs",
        minutes=minutes,
        needs=needs,
        timing=False,
    )


_DESCRIPTORS = "--features {work}/hn16"
_SPEED = "--only K16-a1/8 --only K8-a1/32-n500000 --only plain --only build-"
_TEXT = "--cache {work}/text"
_PLAIN = (
    "--set patches={work}/hardnet/features.npy,{work}/hardnet/queries.npy "
    "--set text={work}/text/entries.npy,{work}/text/queries.npy "
    "--sift {data}/photos --cache {work}/sift"
)
_PUBLIC = "--photos {data}/photos --cache {work}/sift"

_AGAINST = " ".join(
    f"--against {name}"
    for name in (
        "sift",
        "rootsift",
        "vgg",
        "boostdesc",
        "beblid",
        "teblid",
        "daisy",
        "tfeat={data}/weights/tfeat-liberty.safetensors",
        "hardtfeat={data}/weights/hardtfeat-liberty.safetensors",
    )
)

_TRAINED_ON = " ".join(f"--train {place}-tracks" for place in PLACES)

PLAN: tuple[Step, ...] = (
    _features("hn16"),
    _graphs("descriptors", _DESCRIPTORS, 20, "features-hn16"),
    Step(
        "descriptors",
        "descriptors",
        f"{_DESCRIPTORS} --graphs {{work}}/graphs",
        ("descriptors.json", "descriptors.png"),
        minutes=10,
        needs=("graphs-descriptors",),
    ),
    Step("roofs", "roofs", results=("roofs.json",), minutes=4),
    Step(
        "queries",
        "queries",
        results=("calls.json", "groups.json", "cells.json", "hits.json", "threads.json"),
        minutes=5,
    ),
    _graphs("speed", _SPEED, 10),
    Step(
        "speed",
        "speed",
        f"{_SPEED} --graphs {{work}}/graphs",
        ("bench.json", "bench.png"),
        minutes=25,
        needs=("graphs-speed",),
    ),
    Step("tutorial", "speed", "--only tutorial", ("tutorial/bench.json",), minutes=1),
    Step("kernels", "speed.kernels", results=("kernels.json",), minutes=2),
    Step("growth-large", "growth.large", results=("large.json",), minutes=12),
    Step("text-embeddings", "text.embeddings", _TEXT, minutes=5, timing=False),
    _graphs("text", _TEXT, 3, "text-embeddings"),
    Step(
        "text",
        "text",
        f"{_TEXT} --graphs {{work}}/graphs",
        ("text.json",),
        minutes=5,
        needs=("graphs-text",),
    ),
    Step("attention-vectors", "attention.vectors", _TEXT, minutes=3, timing=False),
    _graphs("attention", _TEXT, 10, "attention-vectors"),
    Step(
        "attention",
        "attention",
        f"{_TEXT} --graphs {{work}}/graphs",
        ("attention.json",),
        minutes=10,
        needs=("graphs-attention",),
    ),
    _features("hardnet"),
    _graphs("plain", _PLAIN, 8, "features-hardnet", "text-embeddings"),
    Step(
        "plain",
        "plain",
        f"{_PLAIN} --graphs {{work}}/graphs",
        ("plain.json",),
        minutes=10,
        needs=("graphs-plain",),
    ),
    Step("filters", "filters", results=("filters.json",), minutes=3),
    Step(
        "growth",
        "growth",
        "--features {work}/hardnet/features.npy --queries {work}/hardnet/queries.npy "
        "--largest-graph 0",
        ("cells.json", "cells.png"),
        minutes=12,
        needs=("features-hardnet",),
    ),
    _graphs("public", _PUBLIC, 30, "data"),
    Step(
        "public",
        "public",
        f"{_PUBLIC} --graphs {{work}}/graphs",
        ("public.json",),
        minutes=20,
        needs=("graphs-public", "data"),
    ),
    Step(
        "quality",
        "quality",
        "--data {data} --study {work}/hardnet",
        ("quality.json", "quality.png"),
        minutes=6,
        needs=("features-hardnet",),
    ),
    Step(
        "models",
        "models",
        f"--scene {{data}}/fox.zip --scene {{data}}/monstree.zip {_AGAINST}",
        ("models.json", "roc.png"),
        minutes=5,
        needs=("data",),
    ),
    Step(
        "pairs",
        "photos.pairs",
        "--data {data}",
        ("pairs.json", "pairs.png"),
        minutes=8,
        needs=("data",),
    ),
    Step(
        "places",
        "photos.places",
        "--photos {data}/photos",
        ("places.json",),
        minutes=12,
        needs=("data",),
    ),
    Step(
        "evidence",
        "photos.evidence",
        "--photos {data}/photos",
        ("evidence.json",),
        minutes=8,
        needs=("data",),
        timing=False,
    ),
    Step("shards", "shards", results=("shards.json",), minutes=6, alone=False),
    Step("scale", "scale", "--entries 10000000", ("scale.json",), minutes=14),
    Step("match", "match", results=("match.json",), minutes=9),
    Step(
        "post-hoc",
        "text.post_hoc",
        "--cache {work}/text",
        ("post_hoc.json",),
        minutes=3,
        timing=False,
    ),
    Step("synthetic", "synthetic", results=("synthetic.json",), minutes=12, timing=False),
    Step("attack", "attack", results=("reliability.json",), minutes=21, timing=False),
    Step("check-cost", "attack", "--only cost", ("cost.json",), minutes=3),
    Step("checks", "checks", results=("checks.json",), minutes=40, timing=False),
    Step(
        "reconstruction",
        "reconstruction",
        "--photos {data}/photos --work {work}/reconstruction",
        ("matches.json", "times.json", "grouped.json", "models.json", "memory.json"),
        minutes=120,
        needs=("data",),
    ),
    Step(
        "tracks",
        "models.tracks",
        "--photos {data}/photos --out {work}/tracks",
        minutes=6,
        needs=("data",),
        timing=False,
        smoke="--keypoints 200",
    ),
    Step(
        "reproduce",
        "reproduce",
        f"--data {{data}} --train-data {{work}}/tracks {_TRAINED_ON} --test fox monstree "
        "--recipe tuned --threads 2",
        ("REPORT.md", "index.html", "settings.json"),
        minutes=150,
        needs=("tracks",),
    ),
)


@dataclass(frozen=True)
class Folders:
    """Where a record reads and writes.

    Attributes
    ----------
    out
        A folder for each step, and the log.
    work
        Features, embeddings and graphs: what a later record can use again.
    data
        Scenes and photos, or None.
    """

    out: Path
    work: Path
    data: Path | None

    def fill(self, arguments: str) -> list[str]:
        """The arguments of a step, with the folders put in."""
        places = {"{work}": str(self.work), "{data}": str(self.data)}
        filled = shlex.split(arguments)
        for place, folder in places.items():
            filled = [argument.replace(place, folder) for argument in filled]
        return filled

    def results(self, step: Step) -> Path:
        """The folder that a step writes into."""
        return self.out / step.name


def choose(names: tuple[str, ...], plan: tuple[Step, ...] = PLAN) -> list[Step]:
    """The steps of these names, with what they need, in the order of the plan; all without names.

    Examples
    --------
    >>> [step.name for step in choose(("descriptors", "filters"))]
    ['features-hn16', 'graphs-descriptors', 'descriptors', 'filters']
    """
    known = {step.name: step for step in plan}
    wanted: set[str] = set()

    def want(name: str) -> None:
        if name not in known:
            raise ValueError(f"no step {name!r}: there are {', '.join(known)}")
        wanted.add(name)
        for need in known[name].needs:
            if need in known:
                want(need)

    for name in names or tuple(known):
        want(name)
    return [step for step in plan if step.name in wanted]

"""Approximate opponents at their best: settings chosen on queries that are not timed.

An opponent is a family of structures with one setting of a search each: graphs of hnswlib with 8,
16 and 32 links and their ef, lists of FAISS IVF and their nprobe. For a recall to reach,

1. every structure gets the least setting of a grid in steps of 10% that reaches it;
2. the structure that is fastest at that setting is chosen.

Both steps see the queries of :func:`tune` only. Who times the opponent uses others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.conditions import Group, hold, import_optional
from experiments.harness.methods import HNSW_LINKS, Hnsw, Method, Search
from experiments.harness.structures import Graph, Lists, PeerMetric, Structure
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from hiernorm.threads import thread_count

RECALLS = (0.99, 0.999)
LINKS = (8, 16, 32)
LIST_FACTORS = (1, 4)
"""FAISS IVF has so many lists, times the square root of the number of entries."""

STEP = 1.1
TIMED_QUERIES = 200
TIMED_ROUNDS = 3
SLACK = 1e-6
"""Relative to the k-th score: what a sum in float32 may lack."""


@dataclass(frozen=True)
class Choice:
    """The setting of one structure for one k, and its recall on the queries of the choice."""

    structure: int
    setting: int
    recall: float
    reached: bool
    text: str
    """For a table: ``M=16, ef=55``."""


class Opponent:
    """A method whose structure and setting were chosen for a recall.

    Opponents of one family share their structures; the first of them builds.
    """

    def __init__(
        self, family: str, word: str, recall: float, structures: Sequence[Structure]
    ) -> None:
        self.family = family
        self.name = f"{family}, recall {recall:g}"
        self.index_name = f"{family} structures"
        self.target = recall
        self.word = word
        self.structures = structures
        self.choices: dict[int, Choice] = {}

    def build(self, database: Float32Array, seed: int) -> None:
        """Build every structure."""
        for structure in self.structures:
            structure.build(database, seed)

    def nbytes(self) -> int | None:
        """Bytes of the structure that was chosen for the smallest k; before that, of the first."""
        first = self.choices[min(self.choices)].structure if self.choices else 0
        return self.structures[first].nbytes()

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids, at the setting for the group's k."""
        choice = self.choices[group.k]
        structure = self.structures[choice.structure]
        return structure.search(choice.setting, group.k, group.threads)


class Judge:
    """The recall of ids by their scores: an entry as near as the k-th neighbour counts.

    Parameters
    ----------
    database, queries
        Vectors ``(n, d)`` and ``(m, d)``.
    truth
        Ids of the nearest ``(m, k)``, best first.
    metric
        ``"ip"`` or ``"l2"``.

    Examples
    --------
    >>> x = np.eye(3, dtype=np.float32)
    >>> judge = Judge(x, x[:1], np.array([[0, 1]]), "ip")
    >>> judge.recall(np.array([[0]]), 1), judge.recall(np.array([[0, 2]]), 2)
    (1.0, 1.0)
    """

    def __init__(
        self,
        database: Float32Array,
        queries: Float32Array,
        truth: Int64Array,
        metric: PeerMetric = "ip",
    ) -> None:
        self._database = database
        self._queries = queries
        self._metric = metric
        self._true = self._scores(truth)

    def recall(self, found: Int64Array, k: int) -> float:
        """Share of the k nearest that was found, for the first queries; -1 is no entry."""
        k = min(k, self._true.shape[1])
        ids = np.asarray(found)[:, :k].astype(np.int64)
        limit = self._true[: len(ids), k - 1 : k]
        near = self._scores(ids) >= limit - SLACK * np.maximum(np.abs(limit), 1e-30)
        return float((near & (ids >= 0)).sum() / (k * len(ids)))

    def _scores(self, ids: Int64Array) -> Float64Array:
        """Scores of entries, larger is nearer: ``(m, k)``."""
        scores = np.empty(ids.shape, np.float64)
        for row, (query, entries) in enumerate(zip(self._queries, ids, strict=False)):
            rows, wide = self._database[entries].astype(np.float64), query.astype(np.float64)
            if self._metric == "ip":
                scores[row] = rows @ wide
            else:
                scores[row] = -np.square(rows - wide).sum(axis=1)
        return scores


def graph_opponents(
    metric: PeerMetric = "ip",
    recalls: Sequence[float] = RECALLS,
    folder: Path | None = None,
    timed_build: bool = False,
) -> list[Opponent]:
    """Graphs of hnswlib at every recall, where it is installed.

    With `timed_build`, the first graph is built by one thread and not taken from the folder.
    """
    hnswlib = import_optional("hnswlib")
    if hnswlib is None:
        return []
    if timed_build:  # the usual number of links first, by one thread
        first, *others = sorted(LINKS, key=lambda links: links != HNSW_LINKS)
        graphs = [Graph(hnswlib, first, metric, threads=1)]
        graphs += [Graph(hnswlib, links, metric, folder) for links in others]
    else:
        graphs = [Graph(hnswlib, links, metric, folder) for links in LINKS]
    return [Opponent("hnswlib", "ef", recall, graphs) for recall in recalls]


def keep_graphs(
    database: Float32Array, folder: Path | None, metric: PeerMetric = "ip", seed: int = 0
) -> None:
    """Build the graphs of a database that the folder lacks, for a run that times them.

    Raises
    ------
    click.UsageError
        Without a folder.
    """
    if folder is None:
        raise click.UsageError("--only-graphs needs --graphs FOLDER")
    hnswlib = import_optional("hnswlib")
    for links in LINKS if hnswlib is not None else ():
        graph = Graph(hnswlib, links, metric, folder)
        if not graph.is_kept(database, seed):
            graph.build(database, seed)


def fixed_efs(tuned: Sequence[Opponent], efs: Sequence[int]) -> list[Method]:
    """Searches at given efs over the first graph of tuned opponents, which build it."""
    methods: list[Method] = []
    for ef in efs if tuned else ():
        graph = tuned[0].structures[0]
        assert isinstance(graph, Graph)
        method = Hnsw(graph, ef)
        method.index_name = tuned[0].index_name
        methods.append(method)
    return methods


def list_opponents(metric: PeerMetric = "ip", recalls: Sequence[float] = RECALLS) -> list[Opponent]:
    """FAISS IVF at every recall, over shared lists, where FAISS is installed."""
    faiss = import_optional("faiss")
    if faiss is None:
        return []
    lists = [Lists(faiss, factor, metric) for factor in LIST_FACTORS]
    return [Opponent("FAISS IVF", "nprobe", recall, lists) for recall in recalls]


def build_all(methods: Sequence[Method], database: Float32Array, seed: int) -> dict[str, float]:
    """Build every index once; seconds by the index's name."""
    seconds: dict[str, float] = {}
    for method in methods:
        if method.index_name not in seconds:
            start = time.perf_counter()
            method.build(database, seed)
            seconds[method.index_name] = time.perf_counter() - start
    return seconds


def tune(
    methods: Sequence[Method], judge: Judge, queries: Float32Array, counts: Sequence[int]
) -> None:
    """Choose structure and setting of every opponent among the methods, for every k."""
    for method in methods:
        if isinstance(method, Opponent):
            for k in counts:
                method.choices[k] = choose(method, judge, queries, k)


def choose(opponent: Opponent, judge: Judge, queries: Float32Array, k: int) -> Choice:
    """The fastest structure at its least setting that reaches the recall; else the best recall."""
    found: list[tuple[Choice, float]] = []
    for number, structure in enumerate(opponent.structures):
        grid = settings_grid(structure.most(), first=k if opponent.word == "ef" else 1)
        setting, recall = _least_setting(structure, grid, opponent.target, judge, queries, k)
        text = f"{structure.label}, {opponent.word}={setting}"
        choice = Choice(number, setting, recall, recall >= opponent.target, text)
        found.append((choice, _time(structure, setting, k, queries)))
    reaching = [pair for pair in found if pair[0].reached]
    if reaching:
        return min(reaching, key=lambda pair: pair[1])[0]
    return max(found, key=lambda pair: pair[0].recall)[0]


def _least_setting(
    structure: Structure,
    grid: Sequence[int],
    target: float,
    judge: Judge,
    queries: Float32Array,
    k: int,
) -> tuple[int, float]:
    """The least setting that reaches the recall, or the largest, and its recall.

    Recall grows with the setting, so that halving the grid finds it.
    """
    threads = thread_count(None)

    def recall_at(position: int) -> float:
        return judge.recall(structure.search(grid[position], k, threads)(queries), k)

    with hold(threads, "single"):
        low, high = 0, len(grid) - 1
        while low < high:
            middle = (low + high) // 2
            if recall_at(middle) >= target:
                high = middle
            else:
                low = middle + 1
        return grid[low], recall_at(low)


def settings_grid(most: int, first: int = 1) -> list[int]:
    """Settings in steps of 10%, and of 1 where 10% is less.

    Examples
    --------
    >>> settings_grid(50, first=8)
    [8, 9, 10, 11, 13, 15, 17, 19, 21, 24, 27, 30, 33, 37, 41, 46, 50]
    """
    grid = [first]
    while grid[-1] < most:
        grid.append(min(most, max(grid[-1] + 1, math.ceil(STEP * grid[-1] - 1e-9))))
    return grid


def describe_choices(methods: Sequence[Method]) -> dict[str, dict[str, Any]]:
    """Settings by method and k, for a record."""
    return {
        method.name: {
            str(k): {"settings": c.text, "recall_when_chosen": c.recall, "reached": c.reached}
            for k, c in method.choices.items()
        }
        for method in methods
        if isinstance(method, Opponent)
    }


def _time(structure: Structure, setting: int, k: int, queries: Float32Array) -> float:
    """Least seconds of a few rounds of single queries with one thread."""
    rows = queries[:TIMED_QUERIES]
    with hold(1, "single"):
        search = structure.search(setting, k, 1)
        times = []
        for _ in range(TIMED_ROUNDS):
            start = time.perf_counter()
            search(rows)
            times.append(time.perf_counter() - start)
    return min(times)

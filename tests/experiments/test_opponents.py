"""Opponents are tuned fairly: the least setting that reaches a recall, judged by scores."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("hnswlib", reason="needs hiernorm[bench]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

import itertools

import hiernorm
from experiments.harness.conditions import Group
from experiments.harness.contest import Peers, hold_contest
from experiments.harness.methods import Hiernorm, Search
from experiments.harness.opponents import (
    Judge,
    Opponent,
    choose,
    graph_opponents,
    keep_graphs,
    list_opponents,
    settings_grid,
    tune,
)
from experiments.harness.timing import SMOKE
from hiernorm import synthetic
from hiernorm.reference import Float32Array, Int64Array


class Stairs:
    """A structure that finds the first `setting` of ten neighbours, and what it was asked."""

    label = "stairs"
    build_seconds = 0.0

    def __init__(self, truth: Int64Array) -> None:
        self.truth = truth
        self.asked: list[int] = []

    def build(self, database: Float32Array, seed: int) -> None:
        pass

    def nbytes(self) -> None:
        pass

    def most(self) -> int:
        return 40

    def search(self, setting: int, k: int, threads: int) -> Search:
        self.asked.append(setting)

        def run(queries: Float32Array) -> Int64Array:
            found = np.full((len(queries), k), -1)
            found[:, :setting] = self.truth[: len(queries), : min(setting, k)]
            return found

        return run


@pytest.fixture(scope="module")
def data():
    return synthetic.hierarchical(400, 30, seed=1)


def nearest(data, k: int) -> Int64Array:
    return np.argsort(-(data.queries @ data.database.T), axis=1, kind="stable")[:, :k]


def test_the_grid_has_steps_of_ten_per_cent():
    grid = settings_grid(4_000, first=10)
    assert (grid[0], grid[-1]) == (10, 4_000)
    steps = [b / a for a, b in itertools.pairwise(grid[20:])]
    assert max(steps) < 1.12
    assert all(b > a for a, b in itertools.pairwise(grid))


def test_the_least_setting_that_reaches_the_recall_is_chosen(data):
    truth = nearest(data, 10)
    judge = Judge(data.database, data.queries, truth)
    for target, least in ((0.85, 9), (1.0, 10), (0.05, 1)):
        opponent = Opponent("stairs", "steps", target, [Stairs(truth)])
        choice = choose(opponent, judge, data.queries, k=10)
        assert (choice.setting, choice.reached) == (least, True)


def test_a_recall_that_is_out_of_reach_is_told_with_the_best_one(data):
    truth = nearest(data, 10)
    stairs = Stairs(truth[:, ::-1])  # ids in the wrong order: for k=1 never the nearest
    judge = Judge(data.database, data.queries, truth)
    choice = choose(Opponent("stairs", "steps", 0.99, [stairs]), judge, data.queries, k=1)
    assert not choice.reached
    assert choice.recall == 0.0
    assert choice.setting == 40


def test_recall_counts_entries_that_are_as_near_as_the_kth():
    rows = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    for metric in ("ip", "l2"):
        judge = Judge(rows, rows[:1], np.array([[0, 1]]), metric)
        assert judge.recall(np.array([[1]]), 1) == 1.0  # a copy of the nearest
        assert judge.recall(np.array([[0, 2]]), 2) == 0.5
        assert judge.recall(np.array([[-1, -1]]), 2) == 0.0


@pytest.mark.parametrize("metric", ["ip", "l2"])
def test_graphs_and_lists_reach_their_recall(data, metric):
    index = hiernorm.Index(128, metric=metric)
    index.add(data.database)
    truth = index.search(data.queries, 10).ids
    judge = Judge(data.database, data.queries, truth, metric)
    methods = [*graph_opponents(metric), *list_opponents(metric)]
    assert [method.name for method in methods] == [
        f"{family}, recall {recall}"
        for family in ("hnswlib", "FAISS IVF")
        for recall in (0.99, 0.999)
    ]
    for method in methods[::2]:
        method.build(data.database, seed=0)
    tune(methods, judge, data.queries, (1, 10))
    for method in methods:
        for k in (1, 10):
            assert method.choices[k].reached
            assert judge.recall(method.prepare(Group("single", k, 1))(data.queries), k) >= 0.99


def test_graphs_can_be_kept_before_a_run_that_times_them(data, tmp_path: Path):
    keep_graphs(data.database, tmp_path, seed=0)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(files) == 3
    graph_opponents(folder=tmp_path)[0].build(data.database, seed=0)
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    with pytest.raises(click.UsageError, match="needs --graphs"):
        keep_graphs(data.database, None)


def test_a_graph_is_kept_for_the_next_run(data, tmp_path: Path):
    first, second = (graph_opponents(folder=tmp_path)[0] for _ in range(2))
    first.build(data.database, seed=0)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(files) == 3
    second.build(data.database, seed=0)
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    for one, other in zip(first.structures, second.structures, strict=True):
        searches = (part.search(50, 5, 1) for part in (one, other))
        found = [search(data.queries) for search in searches]
        np.testing.assert_array_equal(*found)
    second.build(data.database[:300], seed=0)
    assert len(list(tmp_path.iterdir())) == 6


def test_settings_are_chosen_on_queries_that_are_not_timed(data):
    own = [Hiernorm("hiernorm", major=16, alpha=1 / 8)]
    groups = [Group("single", 1, 1), Group("batch", 10, 1)]
    found = hold_contest(data.database, data.queries, own, Peers(lists=True), groups, SMOKE)
    assert found["queries"] == {"chosen_on": 15, "timed": 15}
    for group in found["groups"]:
        assert group["methods"]["hiernorm"]["recall"] == 1.0
        assert group["methods"]["FAISS IndexFlatIP"]["recall"] == 1.0
        assert min(row["microseconds"] for row in group["methods"].values()) > 0
    assert set(found["choices"]["hnswlib, recall 0.999"]) == {"1", "10"}

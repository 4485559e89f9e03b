"""Many threads at once: every answer is exact for entries that were published together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import hiernorm
from hiernorm.reference import Float32Array, Float64Array, Int64Array
from support import assert_same_hits, expected_hits, hn_rows, make_index, random_rows

D, MAJOR, K = 16, 5, 10
CUTS = (0, 7, 100, 400, 900, 2100, 2101, 4000)
SEARCHERS = 4


@cache
def _rows() -> Float32Array:
    return hn_rows(CUTS[-1], D, MAJOR)


@cache
def _queries() -> Float32Array:
    return hn_rows(4, D, MAJOR, seed=1)


@cache
def _right(entries: int) -> tuple[Int64Array, Float64Array]:
    return expected_hits(_queries(), _rows()[:entries], K)


def run_together(*tasks: Callable[[], None]) -> None:
    """Run every task in a thread of its own; the first error of any is raised here."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], None]) -> None:
        try:
            start.wait()
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize(
    "kind",
    ["hn-cascade", "hn-cells", "hn-paper", "plain-cascade", "plain-cells", "plain-exhaustive"],
)
def test_a_search_sees_whole_additions_only(kind: str) -> None:
    for entries in CUTS:
        _right(entries)
    index = make_index(kind, D, MAJOR)
    done = threading.Event()
    seen: list[hiernorm.Hits] = []

    def add() -> None:
        try:
            for first, last in pairwise(CUTS):
                index.add(_rows()[first:last])
                index.optimize()
        finally:
            done.set()

    def search() -> None:
        last = 0
        while True:
            finished = done.is_set()
            hits = index.search(_queries(), K, threads=2)
            entries = hits.certificate.entries
            assert entries >= last
            last = entries
            seen.append(hits)
            if finished:
                break
        assert last == CUTS[-1]

    run_together(add, *[search] * SEARCHERS)
    for hits in seen:
        assert hits.certificate.entries in CUTS
        assert_same_hits(hits, _right(hits.certificate.entries))


def test_searches_of_every_kind_share_an_index() -> None:
    index = make_index("hn-cascade", D, MAJOR)
    index.add(_rows())
    expected_range = index.range(_queries(), 0.5)
    hits = index.search(_queries(), K)

    def search() -> None:
        for _ in range(20):
            assert_same_hits(index.search(_queries(), K, threads=2), _right(CUTS[-1]))

    def search_ranges() -> None:
        for _ in range(20):
            np.testing.assert_array_equal(index.range(_queries(), 0.5).ids, expected_range.ids)

    def verify() -> None:
        for _ in range(5):
            assert index.verify(_queries(), hits).ok

    def look_up() -> None:
        for _ in range(20):
            np.testing.assert_array_equal(index.reconstruct([3, 3999]), _rows()[[3, 3999]])
            assert len(index.ids) == CUTS[-1]

    run_together(search, search, search_ranges, verify, look_up)


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "plain-cascade", "plain-cells"])
def test_many_writers_lose_nothing(kind: str) -> None:
    index = make_index(kind, D, MAJOR)
    parts = np.array_split(np.random.default_rng(0).permutation(2000), 40)

    def add(mine: list[np.ndarray]) -> None:
        for part in mine:
            index.add(_rows()[part], part)

    run_together(*[lambda mine=parts[i::4]: add(mine) for i in range(4)])
    assert len(index) == 2000
    np.testing.assert_array_equal(np.sort(index.ids), np.arange(2000))
    np.testing.assert_array_equal(index.reconstruct(np.arange(2000)), _rows()[:2000])
    assert_same_hits(index.search(_queries(), K), expected_hits(_queries(), _rows()[:2000], K))


def test_of_two_additions_of_the_same_ids_one_is_refused_as_a_whole() -> None:
    index = make_index("plain-cascade", D, MAJOR)
    index.add(random_rows(10, D), np.arange(10_000, 10_010))
    refused: list[str] = []

    def add(seed: int) -> None:
        try:
            index.add(random_rows(3000, D, seed), np.arange(3000))
        except ValueError as error:
            refused.append(str(error))

    run_together(*[lambda seed=seed: add(seed) for seed in range(3)])
    assert refused == ["id 0 is in the index already or given twice"] * 2
    assert len(index) == 3010
    rows = index.reconstruct(np.arange(3000))
    assert any(np.array_equal(rows, random_rows(3000, D, seed)) for seed in range(3))


SEARCH_IN_A_CHILD = """
import os, signal, warnings
import numpy as np
import hiernorm

warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: threads and fork
rows = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
index = hiernorm.Index(dim=16)
index.add(rows)
expected = index.search(rows, k=3, threads=3)  # leaves threads that wait for the next search
child = os.fork()
if child == 0:
    signal.alarm(60)
    found = index.search(rows, k=3, threads=3)
    os._exit(0 if found.scores.tobytes() == expected.scores.tobytes() else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(os.name == "nt", reason="forks are of POSIX systems")
def test_a_forked_child_searches_with_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", SEARCH_IN_A_CHILD], check=False).returncode == 0

"""Threads that cannot start, answers that cannot be filled, and Ctrl-C in the middle of work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hiernorm

posix = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX systems")


def _python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    head = f"import sys\nsys.path[:0] = {sys.path!r}\n"
    return subprocess.run(
        [sys.executable, "-c", head + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,  # type: ignore[call-overload]
    )


@posix
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the threads of Linux")
def test_a_search_goes_on_without_threads_that_cannot_be_started() -> None:
    # A stack that is larger than the address space: no thread can be started.
    code = """
import resource
import numpy as np, hiernorm
rows = np.random.default_rng(0).standard_normal((2000, 16)).astype(np.float32)
index = hiernorm.Index(dim=16, threads=8)
index.add(rows)
expected = index.search(rows[:300], 3, threads=1)
space = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (space + (256 << 20),) * 2)
resource.setrlimit(resource.RLIMIT_STACK, (1 << 40, resource.getrlimit(resource.RLIMIT_STACK)[1]))
hits = index.search(rows[:300], 3, threads=64)
assert (hits.ids == expected.ids).all() and (hits.scores == expected.scores).all()
print("right")
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    result = _python(code, env=environment)
    assert result.stdout == "right\n", result.stderr


@posix
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of Linux")
def test_a_search_without_memory_raises_and_ends_nothing() -> None:
    # The first exception of a thread needs memory itself, which it must have by then. Threads that
    # have just started need more: `make attack` tries them, a few searches seldom meet the moment.
    code = """
import resource
import numpy as np, hiernorm
rows = hiernorm.normalize(np.random.default_rng(0).standard_normal((20_000, 32)), 8, 1 / 8)
index = hiernorm.Index(dim=32, major=8, alpha=1 / 8)
index.add(rows)
expected = index.range(rows[:400], 0.5, threads=1).ids
failed = 0
for shift in range(12, 26):
    space = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + (1 << shift), resource.RLIM_INFINITY))
    try:
        found = index.range(rows[:400], 0.5, threads=1).ids
        assert (found == expected).all()
    except MemoryError:
        failed += 1
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert failed > 0
assert (index.range(rows[:400], 0.5, threads=1).ids == expected).all()
print("right")
"""
    result = _python(code, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    assert result.stdout == "right\n", result.stderr


def test_an_answer_that_cannot_be_filled_is_refused(tmp_path: Path) -> None:
    rows = np.eye(3, dtype=np.float32)
    index = hiernorm.Index(dim=3)
    index.add(rows)
    db = hiernorm.Database.create(tmp_path / "db", 3)
    db.add(rows)
    for searchable in (index, db):
        with pytest.raises(ValueError, match="k is 100,000,000, but there are 3 entries: ask for"):
            searchable.search(rows, 10**8)
        hits = searchable.search(rows, 1000)
        assert hits.ids.shape == (3, 1000)
        assert (hits.ids[:, 3:] == -1).all()


def _interrupted(act: Callable[[], object]) -> tuple[bool, float]:
    """Whether ``act`` was ended by Ctrl-C, and the seconds from the signal to its end."""
    sent = 0.0

    def press() -> None:
        nonlocal sent
        time.sleep(0.3)
        sent = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    try:
        thread.start()
        act()
        time.sleep(1.0)  # it was quicker than the signal
        interrupted = False
    except KeyboardInterrupt:
        interrupted = sent > 0.0
    ended = time.perf_counter()
    thread.join()
    return interrupted, ended - sent


@posix
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("engine", ["cascade", "exhaustive"])
def test_ctrl_c_ends_a_long_search(engine: str, threads: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 64)).astype(np.float32)
    index = hiernorm.Index(dim=64, engine=engine)  # type: ignore[arg-type]
    index.add(rows)
    queries = np.concatenate([rows] * 8)
    before = index.digest
    interrupted, seconds = _interrupted(
        lambda: [index.search(queries, 100, threads=threads) for _ in range(50)]
    )
    assert interrupted
    assert seconds < 5.0  # a hundred milliseconds on a machine with nothing else to do
    assert index.digest == before
    np.testing.assert_array_equal(index.search(rows[:5], 1).ids[:, 0], range(5))


@posix
def test_ctrl_c_ends_an_addition_and_leaves_everything_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 64)).astype(np.float32)
    db = hiernorm.Database.create(tmp_path / "db", 64)
    db.add(rows[:100])
    before = sorted(file.name for file in (tmp_path / "db").iterdir())

    def build() -> None:
        for _ in range(100):
            hiernorm.Index(dim=64, cells=True).add(rows)

    assert _interrupted(build)[0]

    def grow() -> None:
        while True:
            db.upsert(rows[:20_000], range(1000, 21_000))
            db.delete(range(1000, 21_000))

    generation = db.generation
    assert _interrupted(grow)[0]
    db.refresh()
    assert db.check().ok
    if db.generation == generation:
        assert sorted(file.name for file in (tmp_path / "db").iterdir()) == before
    np.testing.assert_array_equal(db.reconstruct(range(100)), rows[:100])


def test_other_threads_run_while_the_core_works() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 64)).astype(np.float32)
    index = hiernorm.Index(dim=64, engine="exhaustive")
    index.add(rows)
    ticks, working = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while working.is_set():
            ticks += 1
            time.sleep(0.001)

    working.set()
    ticker = threading.Thread(target=tick)
    ticker.start()
    index.search(rows[:300], 100)
    working.clear()
    ticker.join()
    assert ticks > 20

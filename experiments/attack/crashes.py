"""Processes that are killed, that write at once, that are interrupted, or that fork."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import hiernorm

WRITER = """
import sys
import numpy as np
import numpy.random  # loses a KeyboardInterrupt while it is imported
import hiernorm
path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
db = hiernorm.Database.open(path, lock_timeout=60)
print("ready", flush=True)
try:
    for number in range(first, first + 10_000 * step, step):
        rows = np.random.default_rng(number).standard_normal((40, 8)).astype(np.float32)
        db.add(rows, range(100 * number, 100 * number + 40))
        if number % 7 == 0:
            db.compact()
        print(number, flush=True)
except KeyboardInterrupt:
    pass
"""

FORKER = """
import os, sys, warnings
import numpy as np
import hiernorm
warnings.simplefilter("ignore", DeprecationWarning)
path, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
db = hiernorm.Database.open(path, lock_timeout=60)
children = []
main = os.getpid()
def pieces(number):
    rows = np.random.default_rng(number).standard_normal((40, 8)).astype(np.float32)
    for first in range(0, 40, 10):
        if rng.integers(3) == 0 and os.getpid() == main:
            children.append(os.fork())
            if children[-1] == 0:
                rows = rows + 1
        yield range(100 * number + first, 100 * number + first + 10), rows[first : first + 10]
for number in range(30):
    try:
        db.add(pieces(number))
    except hiernorm.DatabaseError:
        if os.getpid() == main:
            raise
        os._exit(0)
    if os.getpid() != main:
        os._exit(1)
    print(number, flush=True)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print("forked", len(codes), any(codes), flush=True)
"""


def kill_writers(folder: Path, seed: int, how: int, deadline: float) -> Counter[str]:
    """Kill (or interrupt) a writer at a random moment, again and again.

    Counts databases that are whole and hold all that was acknowledged, and those that are not.
    """
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    hiernorm.Database.create(folder / "db", 8).close()
    acknowledged: set[int] = set()
    first = 0
    while not found or time.monotonic() < deadline:
        acknowledged |= _run_writers(folder / "db", [first], 1, float(rng.uniform(0.0, 0.4)), how)
        found["whole" if _holds(folder / "db", acknowledged) else "wrong"] += 1
        first = max(acknowledged, default=0) + 2  # what was under way may be there
    return found


def two_writers(folder: Path, deadline: float) -> Counter[str]:
    """Let two processes write at once; both must find all that they were told is there."""
    found: Counter[str] = Counter()
    for turn in itertools.count():
        if found and time.monotonic() >= deadline:
            break
        path = folder / f"db{turn}"
        hiernorm.Database.create(path, 8).close()
        acknowledged = _run_writers(path, [0, 1], 2, 1.0, signal.SIGKILL)
        found["whole" if _holds(path, acknowledged) else "wrong"] += 1
    return found


def fork_writers(folder: Path, seed: int, deadline: float) -> Counter[str]:
    """Fork in the middle of additions: the child must not change what its parent writes.

    Counts forks after which the database is whole, and those after which it is not.
    """
    found: Counter[str] = Counter()
    while not found or time.monotonic() < deadline:
        path = folder / f"forks{seed}"
        hiernorm.Database.create(path, 8).close()
        command = [sys.executable, "-c", FORKER, str(path), str(seed)]
        child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        *numbers, last = child.stdout.splitlines() or [""]
        word, forks, failed = [*last.split(), "", "0", "True"][:3]
        whole = word == "forked" and failed == "False" and _holds(path, set(map(int, numbers)))
        found["whole" if whole else "wrong"] += int(forks) if whole else 1
        seed += 1
    return found


def _run_writers(path: Path, first: list[int], step: int, seconds: float, how: int) -> set[int]:
    """Start writers, end them after a while, and return what they were told is there."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number), str(step)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in first
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    time.sleep(seconds)
    told: set[int] = set()
    for writer in writers:
        writer.send_signal(how)
        output, _ = writer.communicate(timeout=120)
        told |= {int(line) for line in output.split("\n")[:-1] if line.isdecimal()}
    return told


def _holds(path: Path, numbers: set[int]) -> bool:
    with hiernorm.Database.open(path) as db:
        if not db.check().ok:
            return False
        for number in numbers:
            rows = np.random.default_rng(number).standard_normal((40, 8)).astype(np.float32)
            try:
                there = db.reconstruct(range(100 * number, 100 * number + 40))
            except KeyError:
                return False
            if not np.array_equal(there, rows):
                return False
    return True

"""Memory that runs out, threads that cannot start, and Ctrl-C: of searches and of additions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np

COMMON = """
import resource, sys, tempfile, time
import numpy as np
import hiernorm
seed = int(sys.argv[1])
rng = np.random.default_rng(seed)
rows = hiernorm.normalize(rng.standard_normal((20_000, 32)), 8, 1 / 8)
queries = rows[rng.integers(0, len(rows), 400)]
index = hiernorm.Index(32, major=8, alpha=1 / 8)
index.add(rows)
db = hiernorm.Database.create(tempfile.mkdtemp() + "/db", 32, major=8, alpha=1 / 8)
db.add(rows[:8000])
right = index.search(queries, 5, threads=1)
def is_right(hits):
    return np.array_equal(hits.ids, right.ids) and np.array_equal(hits.scores, right.scores)
def space():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
"""

MEMORY = (
    COMMON
    + """
def limit(extra):
    resource.setrlimit(resource.RLIMIT_AS, (space() + extra, resource.RLIM_INFINITY))
def free():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
for turn in range(30):
    extra = int(2.0 ** rng.uniform(12, 25))
    act = turn % 3
    word = "right"
    limit(extra)
    try:
        if act == 0:
            word = "right" if is_right(index.search(queries, 5, threads=2)) else "wrong"
        elif act == 1:
            db.add(rows[8000:], range(8000, 20_000))
            word = "changed"
        else:
            db.range(queries, 0.5)
    except (MemoryError, OSError, hiernorm.DatabaseError):
        word = "refused"
    free()
    if act == 1:
        expected = 20_000 if word == "changed" else 8000
        db.refresh()
        whole = len(db) == expected and db.check().ok
        word = ("right" if word == "changed" else "refused") if whole else "wrong"
        if len(db) > 8000:
            db.delete(range(8000, 20_000))
    if act == 2 and not is_right(index.search(queries, 5)):
        word = "wrong"
    print(word, flush=True)
"""
)

THREADS = (
    COMMON
    + """
full = hiernorm.Database.create(tempfile.mkdtemp() + "/db", 32, major=8, alpha=1 / 8)
full.add(rows)
# A stack that is larger than the address space: no thread can be started.
resource.setrlimit(resource.RLIMIT_AS, (space() + (512 << 20),) * 2)
resource.setrlimit(resource.RLIMIT_STACK, (1 << 40, resource.getrlimit(resource.RLIMIT_STACK)[1]))
for searchable in (index, full):
    for threads in (2, 7, 64):
        hits = searchable.search(queries, 5, threads=threads)
        print("right" if is_right(hits) else "wrong", flush=True)
again = hiernorm.Index(32, major=8, alpha=1 / 8, threads=16)
again.add(rows)
print("right" if is_right(again.search(queries, 5, threads=16)) else "wrong", flush=True)
"""
)

INTERRUPT = (
    COMMON
    + """
import os
act = sys.argv[2]
many = np.concatenate([rows] * 4)
print("ready", flush=True)
try:
    while True:
        if act == "search":
            index.search(many, 20)
        elif act == "range":
            index.range(many, 0.9)
        elif act == "exhaustive":
            index.verify(queries, right)
        elif act == "build":
            hiernorm.Index(32, cells=True).add(many)
        elif act == "normalize":
            hiernorm.normalize(many, 8)
        elif act == "match":
            hiernorm.match_descriptors(rows[:8000], rows[8000:16_000])
        elif act == "check":
            assert db.check().ok
        elif act == "compact":
            db.delete([0])
            db.upsert(rows[:1], [0])
            db.compact()
        else:
            db.upsert(rows[8000:], range(8000, 20_000))
            db.delete(range(8000, 20_000))
except KeyboardInterrupt:
    print(f"{time.monotonic()} {time.process_time()}", flush=True)
db.refresh()
kept = len(db) in (7999, 8000, 20_000) and db.check().ok
print("right" if kept and is_right(index.search(queries, 5)) else "wrong", flush=True)
"""
)
ACTS = (
    "search",
    "range",
    "exhaustive",
    "build",
    "normalize",
    "match",
    "check",
    "compact",
    "change",
)


def _run(code: str, *arguments: str) -> Counter[str]:
    command = [sys.executable, "-c", code, *arguments]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = Counter(child.stdout.split())
    if "cannot allocate memory for thread-local data" in child.stderr:
        found["ended"] += 1  # by the C library, which had no memory for a new thread's variables
    elif child.returncode < 0:
        found["crashed"] += 1
    elif child.returncode:
        found["wrong"] += 1  # an error that is not one of those that are promised
    return found


def limit_memory(seed: int, deadline: float) -> Counter[str]:
    """Give searches and changes some kilobytes to megabytes more than they have."""
    found: Counter[str] = Counter()
    while not found or time.monotonic() < deadline:
        found += _run(MEMORY, str(seed))
        seed += 1
    return found


def refuse_threads(seed: int, deadline: float) -> Counter[str]:
    """Search and build with many threads where the system starts none."""
    found: Counter[str] = Counter()
    while not found or time.monotonic() < deadline:
        found += _run(THREADS, str(seed))
        seed += 1
    return found


def interrupt(seed: int, deadline: float) -> tuple[Counter[str], list[float]]:
    """Send SIGINT to searches, builds and changes at a random moment.

    Returns what was left of them, and the seconds of processor time from the signal to the
    KeyboardInterrupt: on a machine with other work, the clock on the wall tells nothing.
    """
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    seconds: list[float] = []
    turn = 0
    while turn < len(ACTS) or time.monotonic() < deadline:
        act = ACTS[turn % len(ACTS)]
        command = [sys.executable, "-c", INTERRUPT, str(seed + turn), act]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(float(rng.uniform(0.0, 1.0)))
        used = _processor_time(child.pid)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=300)
        lines = output.splitlines()
        if len(lines) == 2:
            seconds.append(max(0.0, float(lines[0].split()[1]) - used))
            found[lines[1]] += 1
        else:
            found["crashed"] += 1
        turn += 1
    return found, seconds


def _processor_time(process: int) -> float:
    with open(f"/proc/{process}/schedstat") as file:
        main = int(file.read().split()[0]) * 1e-9
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    ticks = (int(fields[11]) + int(fields[12])) / 100.0
    return max(main, ticks)

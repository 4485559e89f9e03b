"""A disk that fails or is full while a database changes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hiernorm
from hiernorm import _files

CALLS = ("open", "pwrite", "fsync", "replace", "unlink")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
DIM = 8
LEAST = 20
"""Calls that fail however little time there is."""

FILL_DISK = """
import sys
import numpy as np
import hiernorm
path, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
db = hiernorm.Database.create(path, 8)
held = {}
refused = 0
for number in range(400):
    rows = rng.standard_normal((int(rng.integers(1, 400)), 8)).astype(np.float32)
    first = db.next_id
    try:
        db.add(rows)
        held.update({first + i: row for i, row in enumerate(rows)})
        if number % 5 == 4:
            db.compact()
    except OSError:
        refused += 1
        if refused == 6:
            break
        if held and refused % 2 == 0:
            some = list(held)[: len(held) // 2]
            try:
                db.delete(some)
                for i in some:
                    del held[i]
            except OSError:
                pass
with hiernorm.Database.open(path) as again:
    ids = np.array(sorted(held))
    whole = again.check().ok and np.array_equal(again.ids, ids)
    whole = whole and np.array_equal(again.reconstruct(ids), [held[i] for i in ids.tolist()])
print("whole" if whole and refused else "wrong")
"""


class _Failing:
    """``os``, except that the call of one kind and number fails."""

    def __init__(self, kind: str, number: int, error: int) -> None:
        self._fails = (kind, number, error)
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        kind, number, error = self._fails
        if name != kind:
            return real

        def call(*arguments: Any) -> Any:
            self._count += 1
            if self._count == number:
                raise OSError(error, os.strerror(error))
            return real(*arguments)

        return call


def fail_calls(folder: Path, seed: int, deadline: float) -> Counter[str]:
    """Let each system call of a change fail in turn; the database must be as before or as after.

    Counts databases that are whole, and calls that the change did not need.
    """
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((90, DIM)).astype(np.float32)
    found: Counter[str] = Counter()
    folder.mkdir()
    with hiernorm.Database.create(folder / "before", DIM) as db:
        db.add(rows[:40])
        db.delete(range(0, 40, 3))
        before = {int(i): rows[i] for i in db.ids}
    after = before | {int(i): rows[i] for i in range(40, 90)}
    places = [(kind, n, error) for error in ERRORS for n in range(1, 12) for kind in CALLS]
    for kind, number, error in places:
        if time.monotonic() >= deadline and found.total() >= LEAST:
            break
        path = folder / "db"
        shutil.copytree(folder / "before", path)
        failing = _Failing(kind, number, error)
        raised = False
        with hiernorm.Database.open(path) as db, mock.patch.object(_files, "os", failing):
            try:
                db.add(rows[40:], range(40, 90))
            except OSError:
                raised = True
        expected = [before, after] if raised else [after]
        found["whole" if any(_holds(path, each) for each in expected) else "wrong"] += 1
        shutil.rmtree(path)
    return found


def _holds(path: Path, model: dict[int, Any]) -> bool:
    with hiernorm.Database.open(path) as db:
        if not db.check().ok or db.ids.tolist() != list(model):
            return False
        return np.array_equal(db.reconstruct(db.ids), np.array(list(model.values())))


def fill_disk(seed: int, deadline: float) -> Counter[str]:
    """Write to a file system of a megabyte until it is full, and go on; what is left of it."""
    found: Counter[str] = Counter()
    if shutil.which("unshare") is None:
        return Counter({"not available": 1})
    script = 'mount -t tmpfs -o size=1m none /mnt && exec "$0" -c "$1" /mnt/db "$2"'
    while not found or time.monotonic() < deadline:
        command = ["unshare", "-rm", "sh", "-c", script, sys.executable, FILL_DISK, str(seed)]
        child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if "mount" in child.stderr and not child.stdout:
            return Counter({"not available": 1})
        found[child.stdout.strip() or "wrong"] += 1
        seed += 1
    return found

"""A process that writes to a database until it is killed, and says what it has done.

Run as a script it forks one writer per line of its input, so that hundreds of them start at once:
each gets (folder, seed, first operation, log) and works until a signal ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from database_support import Model, small_segments, vectors
from payload_support import payload_of

IDS = 60


def operation(seed: int, number: int, known: list[int]) -> tuple[str, list[int], Any]:
    """The operation of this number: what, ids, rows. Depends on the ids that are there."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice(["add", "upsert", "delete", "compact"], p=[0.35, 0.3, 0.25, 0.1]))
    count = int(rng.integers(1, 12))
    free = [i for i in range(IDS) if i not in known]
    if kind == "add":
        ids = rng.permutation(free)[:count].tolist()
    elif kind == "delete":
        ids = rng.permutation(known)[:count].astype(int).tolist()
    else:
        ids = rng.permutation(IDS)[:count].tolist()
    return kind, ids, vectors(seed * 100_003 + number, len(ids))


def apply_to_model(model: Model, seed: int, number: int) -> Model:
    """The model after the operation."""
    kind, ids, rows = operation(seed, number, sorted(model))
    after = dict(model)
    if kind == "delete":
        for i in ids:
            del after[i]
    elif kind != "compact":
        after |= dict(zip(ids, rows, strict=True))
    return after


def apply_to_database(db: hiernorm.Database, seed: int, number: int) -> None:
    """The same, for real."""
    kind, ids, rows = operation(seed, number, db.ids.tolist())
    if kind == "compact":
        db.compact()
    elif not ids:
        return
    elif kind == "add":
        db.add(rows, ids, payload=payload_of(rows))
    elif kind == "upsert":
        db.upsert(rows, ids, payload=payload_of(rows))
    else:
        db.delete(ids)


def write_until_killed(folder: str, seed: int, first: int, log: str) -> None:
    """Do one operation after the other; each is logged before it begins and when it is done."""
    signal.alarm(60)  # should nobody kill us
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    db = hiernorm.Database.open(folder)
    number = first
    while True:
        os.write(out, b"begin %d\n" % number)
        apply_to_database(db, seed, number)
        os.write(out, b"done %d\n" % number)
        number += 1


def read_log(log: Path) -> tuple[int, bool]:
    """The next operation that was not acknowledged, and whether it had begun."""
    last = log.read_text().split("\n")[-2:-1] if log.exists() else []
    if not last:
        return 0, False
    word, number = last[0].split()
    return (int(number), True) if word == "begin" else (int(number) + 1, False)


def main() -> None:
    """Fork a writer per line of stdin; print its number, and wait for it."""
    with small_segments(entries=24):
        for line in sys.stdin:
            folder, seed, first, log = json.loads(line)
            child = os.fork()
            if child == 0:
                try:
                    write_until_killed(folder, seed, first, log)
                except BaseException:
                    import traceback

                    Path(log + ".error").write_text(traceback.format_exc())
                os._exit(1)
            print(child, flush=True)
            os.waitpid(child, 0)
            print("gone", flush=True)


if __name__ == "__main__":
    main()

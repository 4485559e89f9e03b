"""What the checks of blocks cost: the time of searches at each level of `Database.open(check=)`.

Run by `make attack ARGS="--only cost"`, alone on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from hiernorm.storage.checksums import Check
from hiernorm.synthetic import hierarchical

LEVELS: tuple[Check, ...] = ("none", "settled", "touched", "all")
K = 10
QUERIES = 300


def measure_cost(folder: Path, entries: int, rounds: int, seed: int) -> list[dict[str, Any]]:
    """Seconds per query of each level, of single queries and of a batch, on one thread.

    Databases that were opened at each level take turns, and the least of all rounds counts. The
    first search of a database, which compares the blocks that it reads, is timed apart.
    """
    dim, major, alpha = 128, 16, 1 / 8
    data = hierarchical(entries, QUERIES, dim=dim, major=major, alpha=alpha, seed=seed)
    with hiernorm.Database.create(folder / "db", dim, major=major, alpha=alpha) as db:
        db.add(data.database)
    queries = data.queries
    first = {check: _first_searches(folder / "db", check, queries) for check in LEVELS}
    opened = {check: hiernorm.Database.open(folder / "db", check=check) for check in LEVELS}
    single: dict[Check, list[float]] = {check: [] for check in LEVELS}
    batch: dict[Check, list[float]] = {check: [] for check in LEVELS}
    for turn in range(rounds + 1):
        for check in LEVELS[turn % 4 :] + LEVELS[: turn % 4]:
            db = opened[check]
            ones, all_at_once = _timed(db, queries)
            if turn:  # the first turn warms up
                single[check].append(ones)
                batch[check].append(all_at_once)
    return [
        {
            "check": check,
            "first_search": first[check],
            "single": min(single[check]),
            "batch": min(batch[check]),
        }
        for check in LEVELS
    ]


def _timed(db: hiernorm.Database, queries: Any) -> tuple[float, float]:
    def ones() -> None:
        for query in queries:
            db.search(query, K, threads=1)

    return (
        _seconds(ones) / len(queries),
        _seconds(lambda: db.search(queries, K, threads=1)) / len(queries),
    )


def _first_searches(path: Path, check: Check, queries: Any) -> float:
    """Seconds to open the database and to answer one query, files in memory; least of five."""
    found = []
    for query in queries[:5]:

        def open_and_search(query: Any = query) -> None:
            with hiernorm.Database.open(path, check=check) as db:
                db.search(query, K, threads=1)

        found.append(_seconds(open_and_search))
    return min(found)


def _seconds(act: Callable[[], object]) -> float:
    start = time.process_time()  # one thread: the time of other processes does not count
    act()
    return time.process_time() - start


def overhead(rows: list[dict[str, Any]], what: str) -> dict[str, float]:
    """How much longer each level takes than no check, as a share."""
    base = next(row[what] for row in rows if row["check"] == "none")
    return {row["check"]: float(np.float64(row[what]) / base - 1) for row in rows}

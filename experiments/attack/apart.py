"""Attacks in processes of their own, some at a time: each has a share of the time of all."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

Attack = Callable[[float], "Counter[str] | tuple[Counter[str], list[float]]"]
"""Attacks until a time of the monotonic clock; counts what it found, perhaps with delays."""


@dataclass(frozen=True)
class _Running:
    what: str
    process: Any
    start: float


def run_attacks(
    attacks: Mapping[str, tuple[float, Attack]], seconds: float, jobs: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run all attacks, ``jobs`` at a time; the time that one leaves goes to those after it.

    Parameters
    ----------
    attacks
        By name: its share of the time, relative to the others, and what to call.
    seconds
        For all together.
    jobs
        The number of processes.

    Yields
    ------
    name
        In the order in which they end.
    found
        Counts, and the seconds it took; ``crashed`` if its own process ended.
    """
    fork = multiprocessing.get_context("fork")  # attacks hold functions, which cannot be pickled
    end = time.monotonic() + seconds
    waiting = dict(attacks)
    running: dict[Connection, _Running] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            what = next(iter(waiting))
            start = time.monotonic()
            left = sum(share for share, _ in waiting.values())
            share, attack = waiting.pop(what)
            deadline = min(end, start + max(1.0, (end - start) * jobs * share / left))
            ours, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=_attack, args=(attack, deadline, theirs))
            process.start()
            theirs.close()
            running[ours] = _Running(what, process, start)
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            done = running.pop(ready)
            try:
                found = ready.recv()
            except EOFError:
                found = {"crashed": 1}
            done.process.join()
            yield done.what, {**found, "seconds": time.monotonic() - done.start}


def _attack(attack: Attack, deadline: float, to: Connection) -> None:
    found = attack(deadline)
    if isinstance(found, Counter):
        to.send(dict(found))
        return
    counts, delays = found
    middle = sorted(delays)[len(delays) // 2] if delays else 0.0
    to.send({**counts, "slowest": max(delays, default=0.0), "median": middle})

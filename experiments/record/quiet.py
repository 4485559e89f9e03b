"""A quiet machine: who else uses it, and waiting until nobody does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from experiments.harness.machine import LoadWatch

BUSY_SHARE = 0.05
"""Share of all processors from which a timing does not begin, and does not count."""

WINDOW = 5.0
"""Seconds over which the load is watched."""

Say = Callable[[str], None]


def watch_load(seconds: float = WINDOW) -> float | None:
    """Share of the processors that other processes use over so many seconds; None if unknown."""
    watch = LoadWatch()
    time.sleep(seconds)
    return watch.other_processes()


def wait_until_quiet(
    patience: float, say: Say, watch: Callable[[], float | None] = watch_load
) -> bool:
    """Wait until other processes use at most 5% of the machine, and say so while waiting.

    Parameters
    ----------
    patience
        Seconds to wait at most.
    say
        Hears why it waits, once a minute.
    watch
        Gives the share of other processes; None, where the system does not tell, is quiet.

    Returns
    -------
    bool
        Whether the machine is quiet.

    Examples
    --------
    >>> shares = iter([0.9, 0.01])
    >>> wait_until_quiet(60, print, lambda: next(shares))
    waiting: other processes use 90% of the machine, 5% is allowed
    True
    """
    end = time.monotonic() + patience
    told = float("-inf")
    while True:
        share = watch()
        if share is None or share <= BUSY_SHARE:
            return True
        now = time.monotonic()
        if now >= end:
            say(
                f"other processes still use {share:.0%} of the machine, {BUSY_SHARE:.0%} is allowed"
            )
            return False
        if now - told >= 60:
            say(
                f"waiting: other processes use {share:.0%} of the machine, "
                f"{BUSY_SHARE:.0%} is allowed"
            )
            told = now


def busiest_processes(seconds: float = 1.0, count: int = 3) -> list[str]:
    """The processes that use most of the processors, as `share name (pid)`; none if unknown."""
    before = _processor_seconds()
    time.sleep(seconds)
    used = {
        pid: (used - before.get(pid, (0.0, ""))[0], name)
        for pid, (used, name) in _processor_seconds().items()
        if pid != os.getpid()
    }
    most = sorted(used.items(), key=lambda item: -item[1][0])[:count]
    return [f"{share / seconds:.0%} {name} ({pid})" for pid, (share, name) in most if share > 0]


def _processor_seconds() -> dict[int, tuple[float, str]]:
    """Processor time and name of every process, as Linux counts them."""
    second = os.sysconf("SC_CLK_TCK")
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        found[int(file.parent.name)] = ((int(fields[11]) + int(fields[12])) / second, name)
    return found

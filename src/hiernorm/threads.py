"""The number of threads of a call."""

from __future__ import annotations

import os

from hiernorm.arrays import as_count


def thread_count(threads: int | None) -> int:
    """``threads`` if given, else HIERNORM_THREADS, else the processors this process may use."""
    if threads is not None:
        return as_count("threads", threads)
    setting = os.environ.get("HIERNORM_THREADS")
    if setting:
        if not setting.isdecimal() or int(setting) < 1:
            raise ValueError(f"HIERNORM_THREADS must be a positive integer, got {setting!r}")
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

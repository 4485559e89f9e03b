"""The number of threads that FAISS's functions set for all indexes."""

from __future__ import annotations

from hiernorm.arrays import as_count
from hiernorm.threads import thread_count

_limit: int | None = None


def omp_set_num_threads(num_threads: int) -> None:
    """Set the threads of a search, in all indexes that were made without ``threads``."""
    global _limit
    _limit = as_count("num_threads", num_threads)


def omp_get_max_threads() -> int:
    """The threads of a search, unless the index has a number of its own."""
    return thread_count(_limit)

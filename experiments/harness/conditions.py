"""The conditions of a measurement: how queries arrive, thread counts, and the path FAISS takes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

Manner = Literal["calls", "single", "batch"]
"""How queries reach a method.

calls   one Python call per query
single  all queries in one call, each searched by itself
batch   all queries in one call, work shared between them as the method likes
"""

ALWAYS_BLAS = 0
NEVER_BLAS = 2**31 - 1


@dataclass(frozen=True)
class Group:
    """One way of searching, in which all methods take turns."""

    manner: Manner
    k: int
    threads: int

    @property
    def name(self) -> str:
        """For example `single k=1, 1 thread`."""
        return f"{self.manner} k={self.k}, {self.threads} thread{'s' * (self.threads > 1)}"


SINGLE = Group("single", k=1, threads=1)
"""How the paper searches: single queries, the nearest neighbour, one thread."""


def import_optional(name: str) -> Any | None:
    """Import a peer's module, or return None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@contextmanager
def hold(threads: int, manner: Manner) -> Iterator[None]:
    """Hold BLAS and OpenMP to `threads`, and FAISS flat to the path that suits the manner.

    FAISS multiplies matrices (BLAS) when a call brings many queries. That is its best for a batch;
    for single queries it would share loads between queries that are meant to stand alone.
    """
    threadpoolctl = import_optional("threadpoolctl")
    if threadpoolctl is None:
        raise RuntimeError("the experiments need threadpoolctl: pip install 'hiernorm[bench]'")
    faiss = import_optional("faiss")
    with threadpoolctl.threadpool_limits(limits=threads):
        if faiss is None:
            yield
            return
        threshold = faiss.cvar.distance_compute_blas_threshold
        omp_threads = faiss.omp_get_max_threads()
        wanted = ALWAYS_BLAS if manner == "batch" else NEVER_BLAS
        faiss.cvar.distance_compute_blas_threshold = wanted
        faiss.omp_set_num_threads(threads)
        try:
            yield
        finally:
            faiss.cvar.distance_compute_blas_threshold = threshold
            faiss.omp_set_num_threads(omp_threads)

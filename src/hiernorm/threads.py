"""The number of threads of a call, and of the BLAS that NumPy calls.

A fit multiplies and decomposes small matrices. BLAS gives each product to all processors, and its
threads wait for each other in busy loops: on a machine whose processors are shared, a fit takes
fifty times as long with two threads as with one. The bits of a product depend on the number of
threads too. So a fit has one.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from hiernorm.arrays import as_count

OPENBLAS = re.compile(r"(lib\w*openblas[^/\\]*\.(so|dylib|dll)[^/\\]*)$")
PREFIXES = ("scipy_openblas", "openblas")
SUFFIXES = ("64_", "_64", "")
_blas_lock = threading.Lock()
_fits = 0
_threads_before: list[int] = []


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's products and decompositions use one thread until the block ends.

    The setting is that of the whole process: other threads that call BLAS meanwhile have one
    thread too. The last of several blocks restores what was set before the first. Nothing is done
    where NumPy has another BLAS than OpenBLAS.

    Examples
    --------
    >>> with one_blas_thread():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    global _fits
    with _blas_lock:
        if _fits == 0:
            _threads_before[:] = [get() for get, _ in _blas_controls()]
            for _, set_threads in _blas_controls():
                set_threads(1)
        _fits += 1
    try:
        yield
    finally:
        with _blas_lock:
            _fits -= 1
            if _fits == 0:
                for (_, set_threads), before in zip(_blas_controls(), _threads_before, strict=True):
                    set_threads(before)


Control = tuple[Callable[[], int], Callable[[int], None]]


@cache
def _blas_controls() -> tuple[Control, ...]:
    """How to get and set the number of threads of each OpenBLAS that NumPy can have loaded."""
    controls = []
    for path in sorted(_openblas_files()):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        names = [(a, b) for a in PREFIXES for b in SUFFIXES]
        for prefix, suffix in names:
            get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
            set_threads = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
            if get is not None and set_threads is not None:
                controls.append((get, set_threads))
                break
    return tuple(controls)


def _openblas_files() -> set[Path]:
    """The files of OpenBLAS in NumPy's wheel; without one, those that this process has loaded."""
    package = Path(np.__file__).parent
    folders = (package / ".dylibs", package.parent / "numpy.libs")
    files = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    own = {path for path in files if OPENBLAS.search(path.name)}
    maps = Path("/proc/self/maps")
    if own or not maps.exists():
        return own
    lines = maps.read_text().splitlines()
    return {Path(line[line.index("/") :]) for line in lines if OPENBLAS.search(line)}

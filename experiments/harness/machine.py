"""Where a run was made: the machine, its load, versions and commit."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from hiernorm.threads import thread_count

COPY_SIZES = (1 << 20, 8 << 20, 64 << 20)
"""Bytes that are copied to see what the memory gives: the codes of 65,536, 500,000 and 4,000,000
entries at K=16."""

LIBRARIES = (
    "numpy",
    "faiss-cpu",
    "hnswlib",
    "usearch",
    "threadpoolctl",
    "matplotlib",
    "torch",
    "onnxruntime",
    "pycolmap",
    "opencv-python-headless",
    "scikit-learn",
)


@cache
def describe_machine() -> dict[str, Any]:
    """Describe processor, caches, instruction set and system, once per process."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": thread_count(None),
        "caches": _caches(),
        "copy_gb_per_s": {str(size): copy_roof(size) for size in COPY_SIZES},
        "isa": hiernorm.isa(),
        "system": platform.platform(),
    }


@cache
def list_versions() -> dict[str, str | None]:
    """Versions of Python, of hiernorm and of the libraries; None where one is not installed."""
    own = {"python": platform.python_version(), "hiernorm": hiernorm.__version__}
    return {**own, **{name: _version(name) for name in LIBRARIES}}


def copy_roof(size: int, rounds: int = 9) -> float:
    """Measure a copy of `size` bytes by one thread: gigabytes read (and written) a second."""
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        np.copyto(target, source)
        times.append(time.perf_counter() - start)
    return round(size / min(times) / 1e9, 1)


class LoadWatch:
    """Watches how much of the processors other processes take while a run lasts."""

    def __init__(self) -> None:
        self._start = _busy_and_total()
        self._own_start = _own_seconds()

    def other_processes(self) -> float | None:
        """Share of all processor time since the start that others took; None if unknown."""
        now = _busy_and_total()
        if self._start is None or now is None or now[1] <= self._start[1]:
            return None
        busy, total = (after - before for before, after in zip(self._start, now, strict=True))
        return max(0.0, busy - (_own_seconds() - self._own_start)) / total

    def describe(self) -> dict[str, Any]:
        """The load for a record: the share of other processes, and the system's load averages."""
        averages = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
        return {"other_processes": self.other_processes(), "average": averages}


def _own_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _busy_and_total() -> tuple[float, float] | None:
    """Read the seconds of all processors since boot, as Linux counts them: busy, and all."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    ticks = [int(field) for field in stat.read_text(encoding="utf-8").split("\n")[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - idle) / second, sum(ticks) / second


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Sizes of the first core's caches, as Linux states them: {"L1d": "32K", ...}."""
    caches = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text(encoding="utf-8").strip()
            for name in ("level", "type", "size")
        )
        caches[f"L{level}{'' if kind == 'Unified' else kind[0].lower()}"] = size
    return caches


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def find_commit() -> tuple[str | None, bool | None]:
    """The commit of this clone, and whether the tree was clean; None outside a clone."""
    root = Path(__file__).parents[2]
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return (commit, None if changed is None else changed == "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()

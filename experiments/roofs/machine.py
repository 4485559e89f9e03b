"""Roofs of one core, measured by a small C file: bytes from each cache, lines, multiplications."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.harness.machine import describe_machine

SOURCE = Path(__file__).with_name("roofs.c")
ROUNDS = 9
SHORT_REPEATS, SHORT_ROUNDS = 2_000, 2_000
"""Of products: rounds of some microseconds, so that the best one was not interrupted."""
RANDOM_LINES = 1 << 20
BEYOND = 256 << 20
"""Bytes that no cache holds."""

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Level:
    """A place that data lives in, and what one core gets from it.

    Attributes
    ----------
    name, bytes
        ``"L2"``, ``"L3"`` or ``"memory"``, and how much it holds.
    read
        Bytes per second, in order.
    lines
        Cache lines of 64 bytes per second, at random.
    """

    name: str
    bytes: float
    read: float
    lines: float


@dataclass(frozen=True)
class Roofs:
    """All roofs; rates per second."""

    levels: tuple[Level, ...]
    byte_products: float
    double_products: float
    float_products: float

    def level_of(self, size: float) -> Level:
        """The nearest level that holds so many bytes."""
        return next((level for level in self.levels if size <= level.bytes), self.levels[-1])

    def to_result(self) -> dict[str, Any]:
        """For a record; memory has no size."""
        found = asdict(self)
        found["levels"][-1]["bytes"] = None
        return found


def measure_roofs(rounds: int = ROUNDS) -> Roofs:
    """Compile and run the C file."""
    with tempfile.TemporaryDirectory() as folder:
        library = _compile(Path(folder))
        sizes = {**_cache_sizes(), "memory": float("inf")}
        levels = [_measure_level(library, name, size, rounds) for name, size in sizes.items()]
        short = (SHORT_REPEATS, SHORT_ROUNDS)
        return Roofs(
            tuple(levels),
            library.byte_product_rate(*short),
            library.double_rate(*short),
            library.float_rate(*short),
        )


def _measure_level(library: Any, name: str, size: float, rounds: int) -> Level:
    """Read half of what the level holds, again and again: the level above holds less."""
    used = int(min(size / 2, BEYOND)) // 512 * 512
    rows = np.ones(used + 64, np.uint8)
    start = -rows.ctypes.data % 64  # lines of the cache, not parts of two
    data = rows[start : start + used].ctypes.data_as(ctypes.c_void_p)
    repeats = max(1, (8 << 20) // used)
    order = np.random.default_rng(0).integers(0, used // 64, RANDOM_LINES, dtype=np.uint32)
    lines = library.line_rate(data, order.ctypes.data_as(ctypes.c_void_p), len(order), rounds)
    return Level(name, size, library.read_rate(data, used, repeats, rounds), lines)


def _cache_sizes() -> dict[str, float]:
    """Sizes of L2 and L3 in bytes, as far as the system tells."""
    caches: dict[str, str] = describe_machine()["caches"]
    found = {name: caches[name] for name in ("L2", "L3") if name in caches}
    return {name: float(text[:-1]) * UNITS[text[-1]] for name, text in found.items()}


def _compile(folder: Path) -> Any:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("the roofs need a C compiler, and neither cc nor gcc was found")
    file = folder / "roofs.so"
    options = ["-O3", "-march=native", "-shared", "-fPIC", "-o", str(file), str(SOURCE)]
    done = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{compiler} cannot compile {SOURCE.name}:\n{done.stderr}")
    library = ctypes.CDLL(str(file))
    signatures = {
        "read_rate": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int),
        "line_rate": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        "byte_product_rate": (ctypes.c_int, ctypes.c_int),
        "double_rate": (ctypes.c_int, ctypes.c_int),
        "float_rate": (ctypes.c_int, ctypes.c_int),
    }
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_double
    return library

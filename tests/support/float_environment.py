"""Changes the processor's float environment for a while: x86-64 Linux with glibc."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

FE_UPWARD = 0x800
FE_DOWNWARD = 0x400
FE_TOWARDZERO = 0xC00
FLUSH_DENORMALS = 0x8040
"""Flush to zero, and denormals are zero, in MXCSR."""

supported = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="sets the float environment by glibc on x86-64 Linux",
)


@contextmanager
def rounding_mode(mode: int) -> Iterator[None]:
    """Round like this."""
    libm = ctypes.CDLL("libm.so.6")
    before = libm.fegetround()
    assert libm.fesetround(mode) == 0
    try:
        yield
    finally:
        assert libm.fesetround(before) == 0


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Take denormals for zero, in and out."""
    libm = ctypes.CDLL("libm.so.6")
    before = ctypes.create_string_buffer(32)  # fenv_t: 28 bytes of x87, then MXCSR
    assert libm.fegetenv(before) == 0
    (mxcsr,) = struct.unpack_from("<I", before, 28)
    changed = ctypes.create_string_buffer(before.raw, 32)
    struct.pack_into("<I", changed, 28, mxcsr | FLUSH_DENORMALS)
    assert libm.fesetenv(changed) == 0
    try:
        yield
    finally:
        assert libm.fesetenv(before) == 0

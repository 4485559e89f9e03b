"""Damage of files: bytes that change, files that end early."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import numpy as np

from experiments.attack.victims import Victim


def flip_bytes(victim: Victim, seed: int, deadline: float) -> Counter[str]:
    """Change every byte of every file, one at a time, until the deadline; what was answered.

    Files are taken in turns of a few bytes, so that a run that is cut short has met them all.
    """
    rng = np.random.default_rng(seed)
    places = [
        (file, offset)
        for file in sorted(victim.path.iterdir())
        if file.name != "lock"
        for offset in range(file.stat().st_size)
    ]
    found: Counter[str] = Counter()
    order = rng.permutation(len(places))
    for place in order:
        if time.monotonic() >= deadline:
            break
        file, offset = places[place]
        found[_with_flip(victim, file, offset, int(rng.integers(1, 256)))] += 1
    found["bytes"] = len(places)
    return found


def _with_flip(victim: Victim, file: Path, offset: int, change: int) -> str:
    descriptor = os.open(file, os.O_RDWR)
    try:
        byte = os.pread(descriptor, 1, offset)
        os.pwrite(descriptor, bytes([byte[0] ^ change]), offset)
        answer = victim.ask()
        os.pwrite(descriptor, byte, offset)
    finally:
        os.close(descriptor)
    return answer


def truncate_files(victim: Victim, seed: int, deadline: float) -> Counter[str]:
    """Cut every file at many lengths; what was answered."""
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for file in sorted(victim.path.iterdir()):
        if file.name == "lock":
            continue
        whole = file.read_bytes()
        for length in np.unique(rng.integers(0, len(whole), 200)).tolist():
            if time.monotonic() >= deadline:
                break
            file.write_bytes(whole[:length])
            found[victim.ask()] += 1
        file.write_bytes(whole)
    return found

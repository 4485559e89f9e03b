"""Time and peak memory of one pair of photos with very many keypoints, each in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.match.__main__ import memory_of
from hiernorm.adapters.colmap.mapping import import_pycolmap
from hiernorm.byte_matching import ByteDescriptors, match_bytes

MATCHERS = ("hiernorm", "colmap brute force")


def measure_pair(method: str, file: Path, threads: int) -> dict[str, Any]:
    """Match the two sets of a file in this process."""
    with np.load(file) as sets:
        a, b = sets["a"], sets["b"]
    pycolmap = import_pycolmap()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = memory_of("VmRSS")
    start = time.perf_counter()
    if method == "hiernorm":
        first = ByteDescriptors(a)
        found = match_bytes(first, ByteDescriptors(b, first.rotation), threads=threads).pairs
    else:
        options = pycolmap.FeatureMatchingOptions()
        options.sift.cpu_brute_force_matcher = True
        stored = []
        for rows in (a, b):
            stored.append(pycolmap.FeatureDescriptors())
            stored[-1].type = pycolmap.FeatureExtractorType.SIFT
            stored[-1].data = rows
        matcher = pycolmap.FeatureMatcher.create(options)
        found = matcher.match(None, stored[0], None, stored[1])
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_bytes": memory_of("VmHWM") - before, "matches": len(found)}


def run_pair(method: str, file: Path, threads: int, limit: float) -> dict[str, Any]:
    """Measure in a process of its own; what does not finish is reported as such."""
    with np.load(file) as sets:
        row: dict[str, Any] = {"method": method, "keypoints": len(sets["a"]), "threads": threads}
    command = [sys.executable, "-m", "experiments.reconstruction", "--pair", method]
    command += [str(file), str(threads)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return {**row, "failure": f"stopped after {limit:g} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {**row, "failure": lines[-1]}
    return {**row, **json.loads(done.stdout.splitlines()[-1])}

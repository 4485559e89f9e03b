"""Time and peak memory of one pair of photos with very many keypoints, each in a process."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.match.__main__ import memory_of
from experiments.reconstruction.features import pooled_descriptors, write_pair
from experiments.reconstruction.methods import BRUTE, match_pairs_by
from experiments.reconstruction.scene import Scene
from hiernorm.adapters.colmap import ColmapDatabase
from hiernorm.adapters.colmap.mapping import import_pycolmap

LARGE = (("hiernorm", 2), ("hiernorm", 1), ("colmap", 1), (BRUTE, 1))
"""Methods and threads; COLMAP matches one pair on one thread."""


def pooled_pair(scene: Scene, folder: Path, keypoints: int) -> Path:
    """A database of two images with so many SIFT features of a scene each; made if missing."""
    path = folder / f"pair-{keypoints}.db"
    if not path.exists():
        write_pair(path, *pooled_descriptors(scene.source("sift"), keypoints))
    return path


def measure_pair(method: str, source: Path, threads: int) -> dict[str, Any]:
    """Match the two images of a database in this process."""
    import_pycolmap()
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "pair.db"
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
        before = memory_of("VmRSS")
        cost = match_pairs_by(method, source, database, [(1, 2)], threads)
        peak = memory_of("VmHWM") - before
        with ColmapDatabase(database) as opened:
            found = opened.matches((1, 2))
    return {
        **cost._asdict(),
        "peak_bytes": peak,
        "matches": 0 if found is None else len(found),
    }


def run_pair(
    method: str, pair: Callable[[], Path], threads: int, seconds: float, gibibytes: float
) -> dict[str, Any]:
    """Measure in a process of its own; what does not finish is reported as such."""
    command = [sys.executable, "-m", "experiments.reconstruction", "--pair", method]
    command += [str(pair()), str(threads)]
    limit = int(gibibytes * 2**30)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"not finished in {seconds:g} s"}
    if done.returncode:
        if "bad_alloc" in done.stderr or "MemoryError" in done.stderr:
            return {"failure": f"needs more than {gibibytes:g} GiB"}
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"failure": lines[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found

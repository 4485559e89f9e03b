"""Time and peak memory of matching two descriptor sets: hiernorm, kornia, OpenCV.

Each measurement runs in a process of its own, so that its peak memory is its own: all threads of
the machine, a small warm-up, then the best of some rounds. NumPy's BLAS, which only the fit of
plain vectors uses, has one thread: its threads wait for each other where others are at work. A
process may not use more address space than the machine has memory, and not more time than --limit;
what does not finish is reported as such, and not tried with larger sets. The sets are synthetic:
two noisy views of the same vectors, 128 dimensions.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from hiernorm.array_types import UInt8Array
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.settings import Metric

SIZES = (500, 2_000, 10_000, 30_000, 100_000)
METHODS = ("hiernorm", "kornia", "opencv")
KINDS = ("hn", "plain", "uint8")
DIM = 128
Vectors = Float32Array | UInt8Array


def make_views(n: int, kind: str, seed: int = 0) -> tuple[Vectors, Vectors]:
    """Two noisy views of ``n`` vectors in different order, ``(n, 128)``: unit rows, or bytes."""
    rng = np.random.default_rng(seed)
    # The energy of the dimensions falls, as it does in trained descriptors.
    base = rng.standard_normal((n, DIM), dtype=np.float32) * np.geomspace(1, 0.1, DIM)
    views = [base + 0.15 * rng.standard_normal((n, DIM), dtype=np.float32) for _ in range(2)]
    views[1] = views[1][rng.permutation(n)]
    if kind == "hn":
        first, second = (hiernorm.normalize(view, 16, 1 / 8) for view in views)
        return first, second
    first, second = (
        (view / np.linalg.norm(view, axis=1, keepdims=True)).astype(np.float32) for view in views
    )
    if kind == "uint8":  # histograms, as SIFT's: no value is negative, and 512 is the length
        first, second = (np.minimum(np.abs(view) * 512, 255) for view in (first, second))
        return first.astype(np.uint8), second.astype(np.uint8)
    return first, second


def match_mutual(method: str, a: Vectors, b: Vectors) -> Int64Array:
    """The mutual nearest pairs by one of METHODS, ``(n, 2)``, sorted."""
    if method == "hiernorm":
        metric: Metric = "l2" if a.dtype == np.uint8 else "ip"
        return hiernorm.match_descriptors(a, b, ratio=None, metric=metric).pairs
    if method == "kornia":
        torch = import_extra("torch", extra="train")
        match_mnn = import_extra("kornia.feature", extra="train").match_mnn
        with torch.no_grad():
            pairs = match_mnn(*(torch.from_numpy(x).float() for x in (a, b)))[1].numpy()
    else:
        cv2 = import_extra("cv2", extra="vision")
        found = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
        pairs = np.array([(m.queryIdx, m.trainIdx) for m in found])
    ordered: Int64Array = pairs[np.lexsort(pairs.T[::-1])]
    return ordered


def memory_of(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status: this benchmark needs Linux")


def measure(method: str, kind: str, n: int) -> dict[str, Any]:
    """Measure in this process: seconds, and memory above what the sets and libraries take."""
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (total, total))
    match_mutual(method, *make_views(64, kind))
    a, b = make_views(n, kind)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = memory_of("VmRSS")
    times = []
    pairs = np.empty((0, 2), np.int64)
    for _ in range(5 if n <= 2_000 else 2 if n <= 10_000 else 1):
        start = time.perf_counter()
        pairs = match_mutual(method, a, b)
        times.append(time.perf_counter() - start)
    peak = memory_of("VmHWM") - before
    digest = int(np.bitwise_xor.reduce(pairs[:, 0] * 1_000_003 + pairs[:, 1]))
    return {
        "seconds": min(times),
        "peak_bytes": peak,
        "pairs": len(pairs),
        "digest": f"{digest:016x}",
    }


def run(method: str, kind: str, n: int, limit: float) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "experiments.match", "--one", method, kind, str(n)]
    row: dict[str, Any] = {"method": method, "kind": kind, "n": n}
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
        memory = any("alloc" in line.lower() or "memory" in line.lower() for line in lines)
        return {**row, "failure": "out of memory" if memory else lines[-1]}
    return {**row, **json.loads(done.stdout)}


def measure_all(sizes: Sequence[int], limit: float) -> list[dict[str, Any]]:
    """Measure every method on sets of ascending sizes, until one does not finish."""
    rows = []
    failed: dict[tuple[str, str], int] = {}
    for n in sizes:
        for kind in KINDS:
            for method in METHODS:
                click.echo(f"{n:,} {kind} {method}", err=True)
                if (kind, method) in failed:
                    reason = f"not tried: {failed[kind, method]:,} did not finish"
                    rows.append({"method": method, "kind": kind, "n": n, "failure": reason})
                    continue
                rows.append(run(method, kind, n, limit))
                if "failure" in rows[-1]:
                    failed[kind, method] = n
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print the rows as a table."""
    click.echo(
        f"{'n x n':>8} {'vectors':>8} {'method':>9} {'time':>12} {'peak memory':>12} {'pairs':>8}"
    )
    for row in rows:
        start = f"{row['n']:>8,} {row['kind']:>8} {row['method']:>9}"
        if "failure" in row:
            click.echo(f"{start} {row['failure']}")
        else:
            seconds, peak = row["seconds"], row["peak_bytes"] / 2**20
            click.echo(f"{start} {seconds * 1e3:>9,.1f} ms {peak:>8,.0f} MiB {row['pairs']:>8,}")


@click.command("match", cls=Experiment)
@click.option("--one", nargs=3, hidden=True, help="Method, kind and size, in this process.")
@click.option("--size", "sizes", type=int, multiple=True, help="May be repeated  [five sizes]")
@click.option("--limit", default=60.0, show_default=True, help="Seconds of one measurement.")
@seed_option
@smoke_option
@out_option
def main(
    one: tuple[str, str, str] | None,
    sizes: tuple[int, ...],
    limit: float,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Measure time and peak memory of matching two sets."""
    if one:
        method, kind, size = one
        click.echo(json.dumps(measure(method, kind, int(size))))
        return
    recorder = Recorder("match", seed, {"limit": limit})
    rows = measure_all(sorted(sizes) or ((200,) if smoke else SIZES), limit)
    show(rows)
    recorder.write(results_folder("match", out, smoke) / "match.json", {"rows": rows})


if __name__ == "__main__":
    main()

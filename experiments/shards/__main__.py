"""Shards on Ray against one process: latency, throughput, where the time goes, and a model of it.

Synthetic HN vectors (128 dimensions, K=16, alpha=1/8). Measured: one process with all entries;
Ray with 1 and 2 workers (shards); the costs of a call, of a hit merged and of a scan, at sizes that
the comparison does not use. Then a simulation (`model`) predicts latency and throughput with
Ray from these costs, and the report has both. Answers are compared bit for bit all the while.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
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
from experiments.harness.records import Recorder, Result
from experiments.shards.model import Costs, Machine, Plan, carry, fit_power, simulate
from hiernorm import synthetic
from hiernorm.distributed import ShardedDatabase
from hiernorm.distributed.answers import merge_best
from hiernorm.distributed.session import connect
from hiernorm.reference import Float32Array

DIM, MAJOR, ALPHA, K = 128, 16, 1 / 8, 10
IN_FLIGHT = 4
SCALES = {
    "full": {"entries": 1_000_000, "calibrate": (200_000, 500_000), "batch": 256, "batches": 16,
             "singles": 200, "calls": 300},
    "smoke": {"entries": 4_000, "calibrate": (1_000, 3_000), "batch": 16, "batches": 3,
              "singles": 5, "calls": 10},
}  # fmt: skip
WORKERS = (1, 2)
ROUNDS = 3
"""Of all batches, where throughput is measured."""
CARRIED = (1e9, 1e11)


def median_seconds(act: Callable[[], Any], rounds: int) -> float:
    """The median time of an action."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def quantiles(times: list[float]) -> dict[str, float]:
    """Median and 99th percentile."""
    return {"median": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}


def one_process(db: Any, queries: Float32Array, scale: dict[str, Any]) -> dict[str, Any]:
    """Latency of single queries and throughput of batches, one thread; and processor time of both.

    Processor time is what a search takes wherever it has a core to itself; `share_of_a_core` is
    what other processes left of one.
    """
    singles, work = [], time.process_time()
    for query in queries[: scale["singles"]]:
        start = time.perf_counter()
        db.search(query, K, threads=1)
        singles.append(time.perf_counter() - start)
    single_work = (time.process_time() - work) / len(singles)
    batch, work, start = scale["batch"], time.process_time(), time.perf_counter()
    for first in range(0, batch * scale["batches"], batch):
        db.search(queries[first : first + batch], K, threads=1)
    seconds, work = time.perf_counter() - start, time.process_time() - work
    return {
        "single_seconds": quantiles(singles),
        "queries_per_second": batch * scale["batches"] / seconds,
        "work_seconds": {"single": single_work, "batch": work / scale["batches"]},
        "share_of_a_core": work / seconds,
    }


def on_ray(db: ShardedDatabase, queries: Float32Array, scale: dict[str, Any]) -> dict[str, Any]:
    """The same over shards, and where the time of a single query goes."""
    singles, split = [], []
    for query in queries[: scale["singles"]]:
        start = time.perf_counter()
        hits = db.search(query, K)
        singles.append(time.perf_counter() - start)
        split.append(hits.seconds)
    batch, start = scale["batch"], time.perf_counter()
    for _ in range(ROUNDS):
        db.search(queries[: batch * scale["batches"]], K, batch_size=batch)
    seconds = (time.perf_counter() - start) / ROUNDS
    scan = float(np.median([part["shards"] for part in split]))
    merge = float(np.median([part["merge"] for part in split]))
    total = float(np.median([part["total"] for part in split]))
    return {
        "single_seconds": quantiles(singles),
        "split_seconds": {"scan": scan, "merge": merge, "ray_and_network": total - scan - merge},
        "queries_per_second": batch * scale["batches"] / seconds,
    }


def waves_save(db: ShardedDatabase, queries: Float32Array) -> dict[str, dict[str, float]]:
    """Work per query when shards are asked together, and one after the other."""
    found = {}
    for name, wave in (("together", db.shards), ("one_after_the_other", 1)):
        work = db.search(queries, K, wave=wave).certificate.work
        found[name] = {step: float(counts.mean()) for step, counts in work.items()}
    return found


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def call_costs(ray: Any, db: ShardedDatabase, calls: int) -> dict[str, Any]:
    """A call that does nothing: work of the client, work of the actor, and waiting for a turn."""
    pin = db._reader.manifest.pins[0]
    actor, nothing = db._actor_pool.actor(0), np.empty(0, np.int64)
    process = ray.get(actor.info.remote(pin))["process"]
    ray.get([actor.holds.remote(pin, nothing) for _ in range(calls)])
    before, client = cpu_seconds(process), time.process_time()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        ray.get(actor.holds.remote(pin, nothing))
        times.append(time.perf_counter() - start)
    seconds = float(np.median(times))
    client = (time.process_time() - client) / calls
    server = (cpu_seconds(process) - before) / calls
    return {
        "round_trip": quantiles(times),
        "client_call": client,
        "server_call": server,
        "wait_call": max(0.0, seconds - client - server),
    }


def merge_costs(batch: int) -> dict[str, float]:
    """Merging: a constant, and seconds per hit that a shard returned."""
    rng = np.random.default_rng(0)

    def seconds(queries: int, shards: int) -> float:
        parts = [
            (rng.integers(0, 1 << 40, (queries, K)), -np.sort(-rng.random((queries, K))))
            for _ in range(shards)
        ]
        return median_seconds(lambda: merge_best(parts, K), 15)

    small, large = seconds(1, 2), seconds(batch, 8)
    per_hit = max(0.0, (large - small) / ((8 * batch - 2) * K))
    return {"merge_call": small, "merge_hit": per_hit}


def calibrate(
    ray: Any, folder: Path, rows: Float32Array, queries: Float32Array, scale: dict[str, Any]
) -> tuple[Costs, Costs, dict[str, Any]]:
    """Costs of single queries and of batches, at sizes of their own."""
    points: dict[str, dict[int, float]] = {"single": {}, "batch": {}}
    for size in scale["calibrate"]:
        db = hiernorm.Database.create(folder / f"size-{size}", DIM, major=MAJOR, alpha=ALPHA)
        db.add(rows[:size])
        found = one_process(db, queries, scale)
        points["single"][size] = found["work_seconds"]["single"]
        points["batch"][size] = found["work_seconds"]["batch"]
    with ShardedDatabase.create(
        folder / "calls", DIM, shards=1, major=MAJOR, alpha=ALPHA, in_flight=IN_FLIGHT
    ) as empty:
        calls = call_costs(ray, empty, scale["calls"])
    merges = merge_costs(scale["batch"])
    kept = {name: calls[name] for name in ("client_call", "server_call", "wait_call")}
    single = Costs(**kept, **merges, **_power(points["single"]))
    batched = Costs(**kept, **merges, **_power(points["batch"]))
    return single, batched, {"scan_seconds": points, "call_seconds": calls, **merges}


def _power(points: dict[int, float]) -> dict[str, float]:
    unit, power = fit_power(points)
    return {"scan_unit": unit, "scan_power": power}


def predict(
    single: Costs, batched: Costs, shards: int, cores: float, scale: dict[str, Any]
) -> dict[str, float]:
    """What the simulation says of this machine."""
    entries, batch, batches = scale["entries"], scale["batch"], scale["batches"]
    alone = simulate(single, Plan(shards, entries, cores, 1, 20, K))
    many = simulate(batched, Plan(shards, entries, cores, IN_FLIGHT, batches, K * batch))
    return {
        "single_seconds": alone["latency"],
        "queries_per_second": batch * batches / many["seconds"],
    }


def searched_bytes(path: Path, entries: int) -> dict[str, float]:
    """Bytes per entry on the disk, and without the rows, which only finalists are read from."""
    stored = sum(file.stat().st_size for file in path.rglob("segment-*")) / entries
    return {"stored": stored, "searched": stored - 4 * DIM}


def run(folder: Path, scale: dict[str, Any], seed: int) -> Result:
    """Measure, predict, compare."""
    ray = connect()
    entries, batch = scale["entries"], scale["batch"]
    data = synthetic.hierarchical(
        entries, batch * scale["batches"], major=MAJOR, alpha=ALPHA, seed=seed
    )
    rows, queries = data.database, data.queries
    single, batched, costs = calibrate(ray, folder, rows, queries, scale)
    whole = hiernorm.Database.create(folder / "one", DIM, major=MAJOR, alpha=ALPHA)
    start = time.perf_counter()
    whole.add(rows)
    build = (time.perf_counter() - start) / entries
    cores = len(os.sched_getaffinity(0))
    report: dict[str, Any] = {
        "entries": entries, "dim": DIM, "major": MAJOR, "alpha": ALPHA, "k": K, "batch": batch,
        "cores": cores,
        "bytes_per_entry": searched_bytes(folder / "one", entries),
        "build_seconds_per_entry": build,
        "one_process": one_process(whole, queries, scale),
        "costs": costs,
        "workers": {},
    }  # fmt: skip
    left = cores * report["one_process"]["share_of_a_core"]
    right = whole.search(queries, K, threads=1)
    for shards in WORKERS:
        options: dict[str, Any] = {"in_flight": IN_FLIGHT, "deadline": 600.0}
        path = folder / f"shards-{shards}"
        with ShardedDatabase.create(
            path, DIM, shards=shards, major=MAJOR, alpha=ALPHA, **options
        ) as db:
            db.add(rows)
            hits = db.search(queries, K)
            if not (np.array_equal(hits.ids, right.ids) and (hits.scores == right.scores).all()):
                raise RuntimeError(f"{shards} shards: not the answer of one process")
            measured = on_ray(db, queries, scale)
            predicted = predict(single, batched, shards, left, scale)
            found = {"measured": measured, "predicted": predicted}
            if shards > 1:
                found["waves"] = waves_save(db, queries)
            report["workers"][str(shards)] = found
    report["assumed_machine"] = asdict(Machine())
    report["carried"] = [
        row
        for size in CARRIED
        for row in carry(single, batched, batch, size, report["bytes_per_entry"], K, Machine())
    ]
    report["scan_of_10_million"] = {"predicted": single.scan(1e7)}
    return report


@click.command("shards", cls=Experiment)
@seed_option
@smoke_option
@out_option
def main(seed: int, smoke: bool, out: Path | None) -> None:
    """Measure shards on Ray against one process, and compare with the model."""
    recorder = Recorder("shards", seed)
    folder = Path(tempfile.mkdtemp(prefix="hiernorm-shards-"))
    try:
        result = run(folder, SCALES["smoke" if smoke else "full"], seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    recorder.write(results_folder("shards", out, smoke) / "shards.json", result)
    click.echo(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""The runs of a study: kept in one file, also when several processes measure at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from experiments.reconstruction.part import Part, Run

PROCESSES, RUNS = 3, 6


def measure(file: Path, worker: int, start) -> None:
    part = Part(file, 0, {})
    start.wait()
    for number in range(RUNS):
        part.measure({"worker": worker, "number": number}, lambda: {"seconds": 1.0})


def test_processes_that_measure_at_once_lose_no_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(PROCESSES)
    file = tmp_path / "models.json"
    workers = [context.Process(target=measure, args=(file, n, start)) for n in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = sorted((run["worker"], run["number"]) for run in Part(file, 0, {}).runs)
    assert found == [(w, n) for w in range(PROCESSES) for n in range(RUNS)]


def test_a_run_that_another_process_measured_meanwhile_is_there_once(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    first, second = Part(file, 0, {}), Part(file, 0, {})

    def measured_by_both() -> Run:
        second.measure({"scene": "castle"}, lambda: {"seconds": 2.0})
        return {"seconds": 1.0}

    first.measure({"scene": "castle"}, measured_by_both)
    assert [run["seconds"] for run in first.runs] == [2.0]
    assert first.runs == Part(file, 0, {}).runs


def test_what_is_measured_again_replaces_the_same_run_only(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    methods = {"methods": ["colmap", "hiernorm"]}
    for scene in ("castle", "lund"):
        Part(file, 0, {}).measure({"scene": scene, **methods}, lambda: {"seconds": 1.0})
    Part(file, 0, {}).measure({"scene": "lund", "methods": ["brute"]}, lambda: {"seconds": 1.0})
    again = Part(file, 0, {}, again=True)
    again.measure({"scene": "lund", **methods}, lambda: {"seconds": 2.0})
    found = [(run["scene"], run["methods"][0], run["seconds"]) for run in Part(file, 0, {}).runs]
    assert found == [("castle", "colmap", 1.0), ("lund", "brute", 1.0), ("lund", "colmap", 2.0)]

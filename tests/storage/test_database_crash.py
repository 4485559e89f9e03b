"""A writer that is killed at any moment loses nothing that it has acknowledged."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")

import hiernorm
from crash_writer import apply_to_model, read_log
from database_support import Model, arrays_of, assert_equals_model, create
from paths import SUPPORT
from payload_support import assert_payload_fits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@contextmanager
def _writers() -> Iterator[subprocess.Popen[str]]:
    script = SUPPORT / "crash_writer.py"
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


def _run_until(process: subprocess.Popen[str], job: list[Any], seconds: float) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    writer = int(process.stdout.readline())
    time.sleep(seconds)
    os.kill(writer, signal.SIGKILL)
    assert process.stdout.readline() == "gone\n"


def _same(db: hiernorm.Database, model: Model) -> bool:
    ids, rows = arrays_of(model)
    return db.ids.tolist() == ids.tolist() and bool((db.reconstruct(ids) == rows).all())


def _crash_again_and_again(folder: Path, rounds: int, seed: int) -> int:
    """Returns how often an operation was in flight, so that a test can tell it was worth it."""
    path, log = folder / "db", folder / "log"
    create(path)
    moments = random.Random(seed)
    model: Model = {}
    acknowledged = 0
    in_flight = 0
    with _writers() as process:
        for _ in range(rounds):
            first, _ = read_log(log)
            job = [str(path), seed, first, str(log)]
            _run_until(process, job, moments.uniform(0.0, 0.12))
            assert not Path(f"{log}.error").exists(), Path(f"{log}.error").read_text()
            number, begun = read_log(log)
            for done in range(acknowledged, number):
                model = apply_to_model(model, seed, done)
            acknowledged = number
            db = hiernorm.Database.open(path)
            if begun:
                in_flight += 1
                after = apply_to_model(model, seed, number)
                if not _same(db, model) and _same(db, after):
                    model, acknowledged = after, number + 1
                    with log.open("a") as file:  # it was done, though nobody was told
                        file.write(f"done {number}\n")
            assert_equals_model(db, model)
            assert_payload_fits(db)
            assert db.check().ok
    return in_flight


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    assert _crash_again_and_again(tmp_path, rounds=25, seed=1) > 5


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3])
def test_hundreds_of_killed_writers_lose_nothing(tmp_path: Path, seed: int) -> None:
    assert _crash_again_and_again(tmp_path, rounds=400, seed=seed) > 100


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    path, log = tmp_path / "db", tmp_path / "log"
    create(path)
    with _writers() as process:
        _run_until(process, [str(path), 5, 0, str(log)], 0.2)
    db = hiernorm.Database.open(path)
    before = len(db)
    db.add(db.reconstruct(db.ids[:1]) if before else [[1, 0, 0, 0, 0, 0]], [1000])
    assert len(db) == before + 1

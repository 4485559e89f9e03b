"""Readers in processes of their own: each answer is the exhaustive one of some generation."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hiernorm
from crash_writer import apply_to_database, apply_to_model
from database_support import Model, create, right_hits, small_segments
from paths import SUPPORT
from reading_process import K

SEED = 7


def _answers_beside_a_writer(folder: Path, seconds: float) -> tuple[int, int]:
    """Returns how many answers were checked, of how many generations."""
    path = folder / "db"
    create(path)
    script = SUPPORT / "reading_process.py"
    outputs = [folder / "answers1", folder / "answers2"]
    readers = [
        subprocess.Popen([sys.executable, str(script), str(path), str(output), str(seconds)])
        for output in outputs
    ]
    models: dict[int, Model] = {0: {}}
    model: Model = {}
    with small_segments(entries=24):
        db = hiernorm.Database.open(path)
        number = 0
        while any(reader.poll() is None for reader in readers):
            apply_to_database(db, SEED, number)
            model = apply_to_model(model, SEED, number)
            models[db.generation] = model
            number += 1
            time.sleep(0.002)
    assert [reader.wait() for reader in readers] == [0, 0]
    right = {}
    checked = 0
    for output in outputs:
        last = 0
        for line in output.read_text().splitlines():
            generation, ids, scores = json.loads(line)
            assert generation >= last
            last = generation
            if generation not in right:
                expected = right_hits(models[generation], K)
                bits = [score.hex() for score in expected[1].ravel().tolist()]
                right[generation] = (expected[0].tolist(), bits)
            assert (ids, scores) == right[generation]
            checked += 1
    return checked, len(right)


def test_answers_beside_a_writer_are_exact(tmp_path: Path) -> None:
    checked, generations = _answers_beside_a_writer(tmp_path, seconds=3)
    assert checked > 50
    assert generations > 5


@pytest.mark.long
def test_answers_beside_a_writer_are_exact_for_a_minute(tmp_path: Path) -> None:
    checked, generations = _answers_beside_a_writer(tmp_path, seconds=60)
    assert checked > 1000
    assert generations > 100

"""The benchmark of growth runs on small features and writes what its page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("hnswlib", reason="needs hiernorm[bench]")
pytest.importorskip("matplotlib", reason="needs hiernorm[bench]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

from click.testing import CliRunner

from experiments.growth.__main__ import main
from experiments.harness.records import read_record
from experiments.harness.vectors import sample_rows


def test_every_point_has_its_rows_and_its_picture(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name, rows in (("x", 1200), ("q", 20)):
        np.save(tmp_path / f"{name}.npy", random.standard_normal((rows, 64), dtype=np.float32))
    files = ["--features", tmp_path / "x.npy", "--queries", tmp_path / "q.npy", "--out", tmp_path]
    CliRunner().invoke(main, [*map(str, files), "--smoke"], catch_exceptions=False)
    report = read_record(tmp_path / "cells.json").result
    points = {(case["major"], case["alpha_text"]) for case in report["cases"]}
    assert points == {(k, a) for k in (8, 16, 32) for a in ("0", "1/32", "1/16", "1/8", "1/4")}
    assert len(report["cases"]) == len(points)
    for case in report["cases"]:
        (row,) = case["rows"]
        assert row["n"] == 1200
        assert row["recall"]["hiernorm"] == row["recall"]["hiernorm, no cells"] == 1.0
        assert min(row["microseconds"].values()) > 0
    assert len(report["planner"]) == 4
    assert (tmp_path / "cells.png").read_bytes()[:4] == b"\x89PNG"


def test_queries_are_drawn_from_all_photos_and_the_same_for_a_seed() -> None:
    photos = np.repeat(np.arange(10, dtype=np.float32), 100)[:, None]
    drawn = sample_rows(photos, 200, seed=3)
    assert set(drawn[:, 0]) == set(range(10))
    np.testing.assert_array_equal(sample_rows(photos, 200, seed=3), drawn)
    assert not np.array_equal(sample_rows(photos, 200, seed=4), drawn)

"""The benchmarks of the database run, check their answers and say what they measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")

from click.testing import CliRunner

from experiments.filters.__main__ import main as filters
from experiments.harness.points import ALL_POINTS
from experiments.harness.records import read_record
from experiments.scale.__main__ import CHECKED
from experiments.scale.__main__ import main as scale
from experiments.synthetic.__main__ import main as synthetic


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_scale_builds_opens_and_searches(tmp_path: Path) -> None:
    arguments = ["--entries", "1500", "--path", str(tmp_path / "db"), "--out", str(tmp_path)]
    result = CliRunner().invoke(scale, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    report = read_record(tmp_path / "scale.json").result
    assert report["build"]["entries"] == 1500
    assert report["search"]["checked_queries"] == CHECKED
    assert report["search"]["open_seconds"] > 0
    assert not (tmp_path / "db").exists()


def test_filters_agree_with_faiss(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    arguments = ["--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(filters, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    for row in read_record(tmp_path / "filters.json").result["rows"]:
        assert row["exact"]
        assert row["same_ids"] > 0.99  # FAISS sums in float32: near ties may be swapped


def test_synthetic_vectors_are_counted_at_every_point(tmp_path: Path) -> None:
    pytest.importorskip("hnswlib", reason="needs hiernorm[bench]")
    arguments = ["--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(synthetic, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    found = read_record(tmp_path / "synthetic.json").result
    assert {row["n"] for row in found["shares"]} == {600, 1_200}
    assert len(found["shares"]) == 2 * len(ALL_POINTS)
    assert all(row["phase2"] <= 1 / row["n"] for row in found["shares"] if row["alpha"] == 0)
    assert all(0 < share <= 1 for share in found["graphs"]["recall"].values())
    assert [row["major"] for row in found["plain"]] == [16, 24, 32]

"""The benchmarks of the database run, check their answers and say what they measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")

from click.testing import CliRunner
from hiernorm.bench import filters, scale


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_scale_builds_opens_and_searches(tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    arguments = ["--entries", "1500", "--path", str(tmp_path / "db"), "--out", str(out)]
    result = CliRunner().invoke(scale.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    report = json.loads(out.read_text())
    assert report["build"]["entries"] == 1500
    assert report["search"]["checked_queries"] == scale.CHECKED
    assert report["search"]["open_seconds"] > 0
    assert not (tmp_path / "db").exists()


def test_filters_agree_with_faiss(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    out = tmp_path / "filters.json"
    result = CliRunner().invoke(
        filters.main, ["--entries", "3000", "--out", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0
    for row in json.loads(out.read_text())["rows"]:
        assert row["exact"]
        assert row["same_ids"] > 0.99  # FAISS sums in float32: near ties may be swapped

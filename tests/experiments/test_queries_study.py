"""The study of what a query costs runs, and writes every section."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

from click.testing import CliRunner

from experiments.harness.records import read_record
from experiments.queries.__main__ import main
from experiments.queries.sections import SECTIONS


def test_every_section_is_measured_and_recorded(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--smoke", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    for section in SECTIONS:
        rows = read_record(tmp_path / f"{section}.json").result["rows"]
        times = [value for row in rows for value in row.values() if isinstance(value, float)]
        assert times, section
        assert min(times) > 0

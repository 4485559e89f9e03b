"""The study of reconstruction runs at its smallest size and finds what it must."""

from __future__ import annotations

import pytest

pytest.importorskip("pycolmap", reason="needs hiernorm[colmap]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")

from click.testing import CliRunner

from experiments.harness.records import read_record
from experiments.reconstruction.__main__ import main
from experiments.reconstruction.methods import METHODS


def test_the_study_writes_a_record_of_all_methods(tmp_path):
    done = CliRunner().invoke(main, ["--smoke", "--out", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = read_record(tmp_path / "reconstruction.json").result
    (scene,) = result["scenes"]
    assert {row["method"] for row in scene["times"]} == set(METHODS)
    for exact in ("hiernorm", "colmap brute force"):
        assert scene["against_exact"][exact]["exact"] > 0
        assert scene["against_exact"][exact]["missed"] == 0
        assert scene["against_exact"][exact]["added"] == 0
    assert scene["models"]["hiernorm"]["registered"] == 4
    assert {row["method"] for row in result["pairs"]} == {"hiernorm", "colmap brute force"}
    matches = {row["matches"] for row in result["pairs"]}
    assert len(matches) == 1
    assert "| room |" in done.output

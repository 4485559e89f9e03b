"""The study of reconstruction runs at its smallest size and finds what it must."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("pycolmap", reason="needs hiernorm[colmap]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")

from click.testing import CliRunner

from colmap_support import write_database
from experiments.harness.records import read_record
from experiments.reconstruction.__main__ import main
from experiments.reconstruction.features import copy_largest
from experiments.reconstruction.methods import METHODS
from hiernorm.adapters.colmap import ColmapDatabase


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_the_study_writes_a_record_of_all_methods_and_goes_on_where_it_was(tmp_path):
    work, out = tmp_path / "work", tmp_path / "out"
    done = run("--smoke", "--work", work, "--out", out)
    parts = {
        name: read_record(out / f"{name}.json").result["runs"]
        for name in ("matches", "models", "times", "memory")
    }
    timed = {method for run in parts["times"] for method in run["seconds"]}
    assert timed == set(METHODS)
    for found in parts["matches"]:
        assert found["exact"] > 0
        if found["method"] != "colmap":
            assert (found["missed"], found["added"]) == (0, 0)
    models = {run["method"]: run for run in parts["models"]}
    assert models["hiernorm"]["registered"] == 4
    assert len({run["matches"] for run in parts["memory"] if run["method"] != "colmap"}) == 1
    assert done.output.count("| room |") == 3 + 4 + 1 + 1  # matches, models, times, grouped

    changed = read_record(out / "models.json")
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("*.json")}
    changed.result["runs"] = changed.result["runs"][1:]
    (out / "models.json").write_text(changed.to_json())
    run("--smoke", "--work", work, "--out", out)
    after = {file.name: file.stat().st_mtime_ns for file in out.glob("*.json")}
    assert {name for name in after if after[name] != before[name]} == {"models.json"}
    again = {run["method"]: run for run in read_record(out / "models.json").result["runs"]}
    assert set(again) == set(models)

    of_times = ("--part", "times", "--method", "hiernorm")
    run("--smoke", "--work", work, "--out", out, *of_times, "--again")
    timed_again = read_record(out / "times.json").result["runs"]
    assert [run["methods"] for run in timed_again] == [["colmap brute force"], ["hiernorm"]]


def test_features_of_the_largest_scales_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    sizes = rng.permutation(20) + 1.0
    keypoints = np.column_stack((rng.uniform(0, 300, (20, 2)), sizes, np.zeros(20)))
    rows = rng.integers(0, 256, (20, 128)).astype(np.uint8)
    source = write_database(tmp_path / "all.db", [(np.float32(keypoints), rows)])
    copy_largest(source, tmp_path / "few.db", 5)
    with ColmapDatabase(tmp_path / "few.db") as opened:
        assert_array_equal(opened.descriptors(1), rows[sizes > 15])
        assert len(opened.keypoints(1)) == 5

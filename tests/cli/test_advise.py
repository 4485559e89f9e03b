"""`hiernorm advise`: the summary, one JSON object, a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")

from click.testing import CliRunner

from hiernorm.cli.app import app


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).standard_normal((2500, 24)).astype(np.float32)
    np.save(tmp_path / "x.npy", x * np.float32(0.8) ** np.arange(24, dtype=np.float32))
    return tmp_path / "x.npy"


def test_it_says_what_to_expect(vectors: Path) -> None:
    result = CliRunner().invoke(app, ["advise", str(vectors), "-k", "3"])
    assert result.exit_code == 0, result.output
    assert "2,372 of 24 dimensions, metric ip" in result.output  # 128 are held out
    assert "128 queries, k=3" in result.output
    assert "rute force" in result.output


def test_json_has_every_fact(vectors: Path) -> None:
    np.save(vectors.with_name("q.npy"), np.load(vectors)[:30])
    arguments = ["advise", str(vectors), "--queries", str(vectors.with_name("q.npy")), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--metric", "l2", "--rows", "2000"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["entries"], facts["queries"], facts["metric"]) == (2000, 30, "l2")
    assert len(facts["energy"]) == 24
    assert facts["single_factor"] == facts["flat_single_us"] / facts["single_us"]


def test_a_picture_is_drawn(vectors: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs hiernorm[plot]")
    picture = vectors.with_name("out.png")
    result = CliRunner().invoke(app, ["advise", str(vectors), "--plot", str(picture)])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert {path.name for path in vectors.parent.iterdir()} == {"x.npy", "out.png"}


def test_few_vectors_need_no_advice(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((10, 4), np.float32))
    result = CliRunner().invoke(app, ["advise", str(tmp_path / "x.npy")])
    assert result.exit_code == 1
    assert "has 10 vectors; any search is fast below 1,000" in result.output

"""The command line on payload and string keys."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hiernorm
from database_support import QUERIES, D, vectors
from support import expected_hits

pytest.importorskip("click", reason="needs hiernorm[cli]")
pytest.importorskip("rich", reason="needs hiernorm[cli]")
pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")

import pyarrow as arrow
from click.testing import CliRunner, Result
from pyarrow import parquet

from hiernorm.cli.app import app

ROWS = vectors(1, 50)
LANG = ["en", "de"] * 25
META = arrow.table({"lang": LANG, "year": list(range(2000, 2050))})
KEYS = [f"doc {i}" for i in range(50)]


def run(*arguments: object, stdin: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Vectors with a file of columns beside them, and both in one file."""
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    parquet.write_table(META, tmp_path / "meta.parquet")
    lists = arrow.FixedSizeListArray.from_arrays(ROWS.ravel(), D)
    whole = META.append_column("vectors", lists).append_column("ids", arrow.array(KEYS))
    parquet.write_table(whole, tmp_path / "whole.parquet")
    return tmp_path


def test_columns_beside_the_vectors_are_conditions(folder: Path) -> None:
    run("build", folder / "db", folder / "x.npy", "--payload", folder / "meta.parquet")
    assert "lang (string), year (int64)" in run("info", folder / "db").stdout
    where = "lang = 'en' and year >= 2020"
    found = run("search", folder / "db", folder / "q.npy", "-k", 3, "--where", where, "--json")
    allowed = np.arange(20, 50, 2)
    ids, scores = expected_hits(QUERIES, ROWS[allowed], 3, ids=allowed)
    answers = json.loads(found.stdout)["answers"]
    assert [[hit["id"] for hit in row] for row in answers] == ids.tolist()
    assert [[hit["score"] for hit in row] for row in answers] == scores.tolist()
    shown = ("search", folder / "db", folder / "q.npy", "-k", 2, "--columns", "year,lang")
    lines = run(*shown).stdout.splitlines()
    assert lines[0] == "query\trank\tid\tscore\tyear\tlang"
    first = expected_hits(QUERIES, ROWS, 2)
    best = int(first[0][0, 0])
    assert lines[1] == f"0\t0\t{best}\t{float(first[1][0, 0])!r}\t{2000 + best}\t{LANG[best]}"
    assert len(lines) == 9
    assert json.loads(run(*shown, "--json").stdout)["answers"][0][0]["year"] == 2000 + best
    run(*shown, "--out", folder / "hits.parquet")
    assert parquet.read_table(folder / "hits.parquet").column("year")[0].as_py() == 2000 + best
    run(*shown, "--out", folder / "hits.npz", code=2)
    (folder / "ids.txt").write_text("1\n2\n")
    few = run("search", folder / "db", folder / "q.npy", "--where", folder / "ids.txt", "--json")
    assert {hit["id"] for hit in json.loads(few.stdout)["answers"][0]} == {1, 2}


def test_a_wrong_condition_or_column_is_told(folder: Path) -> None:
    run("build", folder / "db", folder / "x.npy", "--payload", folder / "meta.parquet")
    search = ("search", folder / "db", folder / "q.npy")
    failed = run(*search, "--where", "year >> 3", code=1)
    assert "where, at position 6: expected a column or a value, got '>'" in failed.output
    failed = run(*search, "--where", "yaer > 3", code=1)
    assert failed.stderr.endswith("(did you mean 'year'?); columns are id, lang, year\n")
    assert "ids are integers, got 'abc'" in run("delete", folder / "db", "3", "abc", code=2).stderr
    huge = run("delete", folder / "db", "99999999999999999999", code=2)
    assert "got '99999999999999999999'" in huge.stderr
    assert "columns are lang, year" in run(*search, "--columns", "no", code=2).output
    files = ("build", folder / "other", folder / "x.npy", folder / "x.npy")
    assert "one FILE" in run(*files, "--payload", folder / "meta.parquet", code=2).output
    both = ("--payload", folder / "meta.parquet", "--payload-columns", "all")
    assert "not both" in run(*files[:3], *both, code=2).output
    run(*files[:3], "--payload-columns", "all", code=1)
    assert not (folder / "other").exists()


def test_entries_with_string_keys(folder: Path) -> None:
    keyed = ("build", folder / "db", folder / "whole.parquet", "--string-keys")
    run(*keyed, "--payload-columns", "year")
    db = hiernorm.Database.open(folder / "db")
    assert db.columns == {"year": "int64"}
    assert sorted(db.keys) == sorted(KEYS)
    lines = run("search", folder / "db", folder / "q.npy", "-k", 1, "--where", "year = 2007").stdout
    assert lines.splitlines()[0] == "query\trank\tkey\tscore"
    assert [line.split("\t")[2] for line in lines.splitlines()[1:]] == ["doc 7"] * 4
    run("delete", folder / "db", "doc 7", "doc 8")
    (folder / "keys.txt").write_text("doc 9\ndoc 10\n")
    run("delete", folder / "db", "--ids", folder / "keys.txt")
    run("delete", folder / "db", "doc 7", code=1)
    assert len(hiernorm.Database.open(folder / "db")) == 46
    np.save(folder / "more.npy", vectors(2, 2))
    added = ("add", folder / "db", folder / "more.npy", "--ids", "-")
    run(*added, stdin="doc 9\nnew one\n")
    assert "new one" in hiernorm.Database.open(folder / "db")
    run("export", folder / "db", folder / "all.parquet")
    again = ("build", folder / "again", folder / "all.parquet", "--string-keys")
    run(*again, "--payload-columns", "all")
    after = hiernorm.Database.open(folder / "again")
    assert after.payload().equals(hiernorm.Database.open(folder / "db").payload())

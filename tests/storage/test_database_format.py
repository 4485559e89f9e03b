"""Databases of format version 1, written once: every later version reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiernorm
from golden_databases import CASES, describe, make_database, make_rows
from hiernorm.arrays import as_ids
from hiernorm.storage.manifest import read_manifest
from hiernorm.storage.tensors import ALIGNMENT, TensorFile
from paths import GOLDEN
from support import assert_same_hits, expected_hits

FOLDERS = [GOLDEN / "v1" / f"{name}.hn" for name in CASES]


@pytest.fixture(params=FOLDERS, ids=[folder.stem for folder in FOLDERS])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, so that what is kept cannot change."""
    copy = tmp_path / request.param.name
    shutil.copytree(request.param, copy)
    return copy


def _expected(golden: Path) -> Any:
    return json.loads((GOLDEN / "v1" / f"{golden.stem}.json").read_text())


@pytest.mark.smoke
def test_a_kept_database_is_whole_and_gives_its_answers(isa: str, golden: Path) -> None:
    db = hiernorm.Database.open(golden)
    assert db.check().ok
    assert describe(db) == _expected(golden)
    rows = db.reconstruct(db.ids)
    queries = make_rows(3, 4)
    assert_same_hits(db.search(queries, 5), expected_hits(queries, rows, 5, db.metric, db.ids))


def test_a_kept_database_can_be_changed(golden: Path) -> None:
    db = hiernorm.Database.open(golden)
    rows = make_rows(4, 40)
    db.add(rows, range(20_000, 20_040))
    db.delete([5])
    db.compact()
    assert db.check().ok
    assert len(db) == _expected(golden)["entries"] + 39
    np.testing.assert_array_equal(db.reconstruct(range(20_000, 20_040)), rows)


def test_the_same_entries_written_today_have_the_same_answers(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They have negative ids, which were allowed when they were written and are refused now.
    monkeypatch.setattr("hiernorm.storage.importer.as_new_ids", as_ids)
    db = make_database(tmp_path / "today", CASES[golden.stem])
    assert describe(db) == _expected(golden)


def test_what_the_kept_files_show_of_the_format(golden: Path) -> None:
    """Between them the kept databases have every tensor there is; each is where it should be."""
    manifest = read_manifest(golden)
    for record in manifest.segments:
        file = TensorFile(golden / record.data.file)
        assert (file.size, file.header.digest) == (record.data.bytes, record.data.header_sha256)
        for name, tensor in file.header.tensors.items():
            assert tensor.begin % ALIGNMENT == 0 or name.startswith("padding."), name


def test_the_kept_files_have_every_tensor_of_the_format() -> None:
    names = set()
    for folder in FOLDERS:
        for file in folder.glob("*.safetensors"):
            names |= {n for n in TensorFile(file).header.tensors if not n.startswith("padding.")}
    assert names == {
        "cone_norms",
        "cones_16",
        "cones_256",
        "cones_4096",
        "ids",
        "live",
        "major_codes",
        "minor_codes.0",
        "norms",
        "rotation",
        "rows",
        "sorted_ids",
        "sorted_positions",
    }

"""What the database refuses: bad input, bad parameters, folders that are something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiernorm
import hiernorm.storage
from database_support import (
    QUERIES,
    D,
    assert_equals_model,
    contents,
    create,
    vectors,
)
from hiernorm.storage.errors import FormatVersionError, NotADatabaseError
from support import raises_text

NAN, INF = float("nan"), float("inf")


BAD_CHANGES: dict[str, tuple[Callable[[hiernorm.Database], Any], type[Exception], str]] = {
    "nan": (
        lambda db: db.add(np.where(np.eye(3, D) > 0, NAN, 1)),
        ValueError,
        "vectors row 0, dimension 0 is NaN; all values must be finite float32",
    ),
    "infinity": (
        lambda db: db.upsert(np.full((1, D), INF), [1]),
        ValueError,
        "vectors row 0, dimension 0 is infinite; all values must be finite float32",
    ),
    "too-narrow": (
        lambda db: db.add(np.ones((2, 5))),
        ValueError,
        "vectors have 5 dimensions, the index has 6",
    ),
    "id-known": (
        lambda db: db.add(vectors(1, 2), [50, 3]),
        ValueError,
        "id 3 is in the database already: upsert replaces it",
    ),
    "id-twice": (
        lambda db: db.add(vectors(1, 2), [50, 50]),
        ValueError,
        "id 50 is given twice",
    ),
    "id-twice-to-replace": (
        lambda db: db.upsert(vectors(1, 2), [3, 3]),
        ValueError,
        "id 3 is given twice",
    ),
    "few-ids": (
        lambda db: db.add(vectors(1, 2), [50]),
        ValueError,
        "2 vectors need 2 ids, got 1",
    ),
    "float-ids": (
        lambda db: db.delete([1.0]),
        TypeError,
        "ids must be integers (int64 is used), got dtype float64",
    ),
    "unknown-id": (lambda db: db.delete([1, 99]), KeyError, "id 99 is not in the database"),
    "unknown-vector": (
        lambda db: db.reconstruct([99]),
        KeyError,
        "id 99 is not in the database",
    ),
    "k": (lambda db: db.search(QUERIES, 0), ValueError, "k must be at least 1, got 0"),
    "threshold": (
        lambda db: db.range(QUERIES, NAN),
        ValueError,
        "threshold must be finite, got nan",
    ),
}


@pytest.mark.parametrize("name", BAD_CHANGES)
def test_bad_input_changes_nothing(path: Path, name: str) -> None:
    call, error, text = BAD_CHANGES[name]
    rows = vectors(1, 10)
    db = create(path)
    db.add(rows)
    before = contents(path)
    with raises_text(error, text):
        call(db)
    assert contents(path) == before
    assert_equals_model(db, {i: rows[i] for i in range(10)})


def test_a_zero_vector_has_no_cosine(path: Path) -> None:
    db = create(path, metric="cosine")
    with pytest.raises(ValueError, match="vectors row 0 is a zero vector"):
        db.add(np.zeros(D))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"dim": 1}, "dim must be at least 2, got 1"),
        ({"dim": 8, "major": 8}, "major must be from 1 to 7 for 8 dimensions, got 8"),
        (
            {"dim": 8, "metric": "l1"},
            "metric must be one of ip, cosine, l2, got 'l1'",
        ),
    ],
)
def test_bad_parameters_make_no_folder(path: Path, parameters: dict[str, Any], text: str) -> None:
    with raises_text(ValueError, text):
        hiernorm.Database.create(path, **parameters)
    assert not path.exists()


def test_what_is_there_already_is_not_overwritten(path: Path, tmp_path: Path) -> None:
    create(path)
    with raises_text(FileExistsError, f"{path} is a database already: choose another folder"):
        create(path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("all of it")
    with raises_text(FileExistsError, f"{tmp_path / 'other'} is not empty: choose another folder"):
        create(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.tex").read_text() == "all of it"


def test_what_is_no_database_is_said_to_be_none(path: Path, tmp_path: Path) -> None:
    with raises_text(
        NotADatabaseError,
        f"{path} does not exist: not a hiernorm database; Database.create makes one",
    ):
        hiernorm.Database.open(path)
    path.mkdir()
    with raises_text(
        NotADatabaseError,
        f"{path} has no manifest.json: not a hiernorm database; Database.create makes one",
    ):
        hiernorm.Database.open(path)
    (path / "manifest.json").write_text('{"name": "some app"}')
    with raises_text(
        NotADatabaseError, f"{path / 'manifest.json'} is not the manifest of a hiernorm database"
    ):
        hiernorm.Database.open(path)
    (tmp_path / "file").write_text("")
    with raises_text(
        NotADatabaseError, f"{tmp_path / 'file'} is a file, a hiernorm database is a folder"
    ):
        hiernorm.Database.open(tmp_path / "file")


def test_another_format_version_is_refused(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 5))
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "version": 3}))
    before = contents(path)
    text = (
        f"{path} has format version 3, this hiernorm reads versions 1 and 2: "
        "install the version of hiernorm that wrote it"
    )
    with raises_text(FormatVersionError, text):
        hiernorm.Database.open(path)
    with raises_text(FormatVersionError, text):
        db.add(vectors(2, 5))
    assert contents(path) == before

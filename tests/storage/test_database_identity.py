"""Digests and selections belong to one generation of one database, whatever its number."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import hiernorm
from database_support import QUERIES, create, vectors

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"


def test_a_digest_is_not_that_of_the_generation_before_a_restore(tmp_path: Path) -> None:
    with create(tmp_path / "db") as db:
        db.add(vectors(1, 20))
        db.snapshot(tmp_path / "copy")
        db.add(vectors(2, 5))
        later, number = db.digest, db.generation
        shutil.rmtree(tmp_path / "db")
        shutil.copytree(tmp_path / "copy", tmp_path / "db")
        with hiernorm.Database.open(tmp_path / "db") as restored:
            restored.add(vectors(3, 5))
            expected = restored.digest
        assert db.refresh()
        assert db.generation == number
        assert db.digest == expected != later


def test_a_selection_of_another_database_is_refused(tmp_path: Path) -> None:
    first, second = create(tmp_path / "a"), create(tmp_path / "b")
    first.add(vectors(1, 20))
    second.add(vectors(2, 20))
    assert first.generation == second.generation
    selection = first.select(range(3))
    with pytest.raises(ValueError, match="the selection is of another database: select again"):
        second.search(QUERIES, 3, where=selection)
    assert set(first.search(QUERIES, 3, where=selection).ids.ravel().tolist()) == {0, 1, 2}


def test_a_pickled_database_is_its_path(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    db.add(vectors(1, 20))
    twin = pickle.loads(pickle.dumps(db))
    np.testing.assert_array_equal(twin.search(QUERIES, 3).ids, db.search(QUERIES, 3).ids)
    twin.add(vectors(2, 1))
    assert db.refresh()
    assert len(db) == 21
    db.close()
    with pytest.raises(ValueError, match="was closed: it cannot be pickled"):
        pickle.dumps(db)


def test_every_database_has_an_identity_that_changes_and_copies_keep(tmp_path: Path) -> None:
    first, second = create(tmp_path / "a"), create(tmp_path / "b")
    identity = first.identity
    assert identity is not None
    assert identity != second.identity
    first.add(vectors(1, 20))
    first.delete([3])
    first.compact()
    assert first.identity == identity
    assert first.snapshot(tmp_path / "copy").identity == identity
    first.salvage()
    assert hiernorm.Database.open(tmp_path / "a").identity == identity


def test_a_database_of_an_earlier_version_gets_its_identity_with_the_next_change(
    tmp_path: Path,
) -> None:
    shutil.copytree(GOLDEN / "plain-ip.hn", tmp_path / "db")
    db = hiernorm.Database.open(tmp_path / "db")
    assert db.identity is None
    digest = db.digest
    db.add(np.ones((1, 8), np.float32), [123_456])
    db.delete([123_456])
    assert db.identity is not None
    assert db.identity == hiernorm.Database.open(tmp_path / "db").identity
    assert db.digest == digest

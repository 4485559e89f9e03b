"""String keys: entries named by strings, found by them, and in no order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hiernorm
from database_support import QUERIES, D, small_segments, vectors
from hiernorm.payload.keys import id_of_key
from support import assert_same_bits, assert_same_hits, expected_hits, raises_text

arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")

KEYS = [f"doc-{i}" for i in range(90)]
ROWS = vectors(1, 90)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_segments(entries=40):
        yield


@pytest.fixture
def db(path: Path) -> hiernorm.Database:
    db = hiernorm.Database.create(path, D, string_keys=True)
    db.add(ROWS[:50], KEYS[:50], payload={"n": list(range(50))})
    db.add(ROWS[50:], KEYS[50:])
    return db


def test_entries_are_found_changed_and_deleted_by_key(db: hiernorm.Database) -> None:
    db.upsert(vectors(2, 2), ["doc-3", "new"], payload={"n": [77, 78]})
    db.delete(["doc-5", "doc-60"])
    for opened in (db, hiernorm.Database.open(db.path)):
        assert opened.string_keys
        assert len(opened) == 89
        assert set(opened.keys) == {*KEYS, "new"} - {"doc-5", "doc-60"}
        assert [key in opened for key in ("doc-3", "new", "doc-5", "doc")] == [
            True,
            True,
            False,
            False,
        ]
        assert_same_bits(
            opened.reconstruct(["new", "doc-8"]), np.stack([vectors(2, 2)[1], ROWS[8]])
        )
        assert opened.payload(["new", "doc-3", "doc-4"]).column("n").to_pylist() == [78, 77, 4]
        assert opened.columns == {"n": "int64"}
    db.compact()
    assert db.check().ok
    assert db.payload(["doc-70", "doc-7"]).select(["key", "n"]).to_pylist() == [
        {"key": "doc-70", "n": None},
        {"key": "doc-7", "n": 7},
    ]
    with pytest.raises(KeyError, match="key 'doc-5' is not in the database"):
        db.delete(["doc-1", "doc-5"])
    assert "doc-1" in db
    db.delete(["doc-1", "doc-5"], ignore_missing=True)
    assert "doc-1" not in db
    with pytest.raises(KeyError, match="key 'doc-5' is not in the database"):
        db.reconstruct("doc-5")


def test_hits_give_the_keys_back(db: hiernorm.Database) -> None:
    hits = db.search(ROWS[[4, 9]], 3)
    ids = np.array([id_of_key(key) for key in KEYS])
    assert_same_hits(hits, expected_hits(ROWS[[4, 9]], ROWS, 3, ids=ids))
    name = dict(zip(ids.tolist(), KEYS, strict=True))
    assert hits.keys.tolist() == [[name[i] for i in row] for row in hits.ids.tolist()]
    assert hits.to_arrow().column("key").to_pylist() == hits.keys.ravel().tolist()
    few = db.search(ROWS[4], 3, where=["doc-4", "doc-9", "unknown"])
    assert set(few.keys[0, :2]) == {"doc-4", "doc-9"}
    assert few.keys[0, 2] is None
    assert db.search(ROWS[4], 1, where="key = 'doc-9'").keys.tolist() == [["doc-9"]]
    assert set(db.range(ROWS[4], -9.0, where="key like 'doc-1_'").keys) == set(KEYS[10:20])
    assert_same_bits(db.reconstruct(hits.ids[0]), db.reconstruct(hits.keys[0]))


def test_answers_do_not_depend_on_the_order_of_insertion(db: hiernorm.Database) -> None:
    """Many rows are equal, so the ids decide: they must not come from the order."""
    other = hiernorm.Database.create(db.path.parent / "other.hn", D, string_keys=True)
    for at in np.random.default_rng(3).permutation(90).reshape(6, 15):
        other.add(ROWS[at], [KEYS[i] for i in at])
    ones = np.ones((1, D), np.float32)
    assert other.search(ones, 9).keys.tolist() == db.search(ones, 9).keys.tolist()
    assert other.digest == db.digest


@pytest.mark.parametrize(
    "ids", [KEYS[:2], tuple(KEYS[:2]), np.array(KEYS[:2]), arrow.array(KEYS[:2])]
)
def test_keys_come_in_any_sequence(path: Path, ids: Any) -> None:
    db = hiernorm.Database.create(path, D, string_keys=True)
    db.add(ROWS[:2], ids)
    assert sorted(db.keys) == KEYS[:2]
    db.delete(ids)
    assert len(db) == 0


def test_keys_that_do_not_fit_are_refused(db: hiernorm.Database) -> None:
    before = db.generation
    wanted = "this database has string keys: give ids, a string for every vector, such as "
    for ids in (None, [1], np.array([3])):
        with pytest.raises(TypeError, match=wanted):
            db.add(ROWS[:1], ids)
    with raises_text(ValueError, "key 'doc-1' is in the database already: upsert replaces it"):
        db.add(ROWS[:1], ["doc-1"])
    for insert in (db.add, db.upsert):
        with raises_text(ValueError, "key 'a' is given twice"):
            insert(ROWS[:3], ["a", "b", "a"])
        with raises_text(ValueError, "2 vectors need 2 ids, got 1"):
            insert(ROWS[:2], ["a"])
        with raises_text(ValueError, "a key is the empty string: give every entry a name"):
            insert(ROWS[:2], ["a", ""])
        with pytest.raises(ValueError, match="has half of a surrogate pair"):
            insert(ROWS[:2], ["a", "b\ud800"])
        with raises_text(TypeError, "keys must be strings, got 3 of type int"):
            insert(ROWS[:2], ["a", 3])
        with pytest.raises(
            ValueError, match="payload column 'key': that is the name of the string"
        ):
            insert(ROWS[:1], ["a"], payload={"key": ["x"]})
    assert db.generation == before


def test_two_keys_with_one_id_are_never_taken_for_each_other(path: Path) -> None:
    with mock.patch("hiernorm.payload.keys.id_of_key", len):
        db = hiernorm.Database.create(path, D, string_keys=True)
        db.add(ROWS[:2], ["a", "bb"])
        text = "keys 'c' and 'a' have the same id by chance: rename one"
        for insert in (db.add, db.upsert):
            with raises_text(ValueError, text):
                insert(ROWS[:1], ["c"])
        with pytest.raises(ValueError, match="have the same id by chance"):
            db.add(ROWS[:2], ["ccc", "ddd"])
        assert "c" not in db
        with pytest.raises(KeyError, match="key 'c'"):
            db.delete(["c"])
        assert len(db.select(["c", "bb"])) == 1
        assert db.check().ok
    assert "string keys are not those of the ids" in db.check().differences[0]


def test_a_database_without_string_keys_says_so(path: Path) -> None:
    db = hiernorm.Database.create(path, D)
    db.add(ROWS[:3])
    assert not db.string_keys
    assert "a" not in db
    for act in (lambda: db.delete(["a"]), lambda: db.search(QUERIES, where=["a"])):
        with pytest.raises(TypeError, match="create one with string_keys=True"):
            act()
    with pytest.raises(TypeError, match=r"ids must be integers .*: see string_keys=True"):
        db.add(ROWS[:1], ["a"])
    with pytest.raises(AttributeError, match="string_keys=True"):
        _ = db.keys
    with pytest.raises(AttributeError, match="string_keys=True"):
        _ = db.search(QUERIES, 1).keys

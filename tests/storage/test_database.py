"""The database as its users see it: answers, ids, generations, segments, snapshots, threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import hiernorm
import hiernorm.storage
from database_support import (
    ALPHA,
    QUERIES,
    D,
    assert_equals_model,
    contents,
    create,
    right_hits,
    small_segments,
    vectors,
)
from support import assert_same_hits, expected_hits, hn_rows, raises_text, random_rows


@pytest.mark.smoke
@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
@pytest.mark.parametrize("kind", ["hn", "plain"])
def test_answers_are_those_of_an_index(isa: str, path: Path, kind: str, metric: str) -> None:
    """Segments with codes and without, deleted entries, several dimensions of the minor."""
    x, queries = hn_rows(3000, 80, 9, ALPHA), hn_rows(5, 80, 9, ALPHA, seed=1)
    split = {"major": 9, "alpha": ALPHA} if kind == "hn" else {}
    db = hiernorm.Database.create(path, 80, metric=metric, **split)
    db.add(x[:2500])
    db.add(x[2500:2600])
    db.delete(range(0, 2600, 7))
    db.add(x[2600:])
    index = hiernorm.Index(80, metric=metric, **split)
    left = np.array([i for i in range(3000) if i >= 2600 or i % 7])
    index.add(x[left], left)
    for k in (1, 10, 100):
        assert_same_hits(db.search(queries, k), index.search(queries, k))
        assert_same_hits(db.search(queries, k, threads=2, batch_size=1), index.search(queries, k))
    assert db.digest == index.digest
    db.compact()
    assert_same_hits(db.search(queries, 10), index.search(queries, 10))
    assert_same_hits(hiernorm.Database.open(path).search(queries, 10), index.search(queries, 10))


def test_an_empty_database_finds_nothing(path: Path) -> None:
    db = create(path)
    assert (db.search(QUERIES, 3).ids == -1).all()
    assert db.search(QUERIES, 3).certificate.exact.all()
    assert [len(ids) for ids, _ in db.range(QUERIES, 0.0)] == [0] * 4
    assert len(db) == 0
    assert db.check().ok
    with pytest.raises(ValueError, match="queries row 0, dimension 0 is NaN"):
        db.search(np.full(D, np.nan))


def test_a_reader_stays_on_its_generation_until_it_refreshes(path: Path) -> None:
    db = create(path)
    rows = vectors(1, 40)
    db.add(rows[:20])
    reader = hiernorm.Database.open(path)
    before = {i: rows[i] for i in range(20)}
    db.delete([0])
    db.add(rows[20:])
    db.compact()
    assert_equals_model(reader, before)
    assert reader.refresh()
    assert not reader.refresh()
    assert_equals_model(reader, {i: rows[i] for i in range(1, 40)})


def test_ids_that_are_not_given_follow_the_largest_there_ever_was(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 3))
    db.add(vectors(2, 1), [100])
    db.delete([100])
    db.add(vectors(3, 2))
    assert db.ids.tolist() == [0, 1, 2, 101, 102]
    db.add(vectors(4, 1), [2**63 - 1])
    with raises_text(ValueError, "the ids that follow the largest do not fit int64: give ids"):
        db.add(vectors(5, 1))


def test_segments_stay_few(path: Path) -> None:
    db = create(path)
    rows = vectors(1, 63)
    for row in rows:
        db.add(row)
    assert db.info()["segments"] <= 6
    assert_equals_model(db, {i: rows[i] for i in range(63)})


@pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be removed there")
def test_deleting_all_leaves_no_file(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 30))
    db.delete(range(30))
    assert contents(path).keys() == {"manifest.json"}
    db.add(vectors(1, 2))
    assert db.ids.tolist() == [30, 31]


def test_a_snapshot_is_a_database_of_its_own(path: Path, tmp_path: Path) -> None:
    db = create(path)
    rows = vectors(1, 30)
    db.add(rows)
    db.delete([4])
    reader = hiernorm.Database.open(path)
    db.compact()  # the reader's files are gone from the folder, not from its mapping
    copy = reader.snapshot(tmp_path / "copy.hn")
    model = {i: rows[i] for i in range(30) if i != 4}
    assert_equals_model(copy, model)
    assert copy.check().ok
    copy.add(vectors(2, 1))
    assert_equals_model(db, model)
    with raises_text(
        FileExistsError, f"{tmp_path / 'copy.hn'} is a database already: choose another folder"
    ):
        db.snapshot(tmp_path / "copy.hn")


def test_many_threads_may_search_while_one_writes(path: Path) -> None:
    rows = vectors(1, 300)
    with small_segments():
        db = create(path)
        stop = threading.Event()
        errors: list[BaseException] = []

        def search() -> None:
            try:
                while not stop.is_set():
                    count = len(db)
                    hits = db.search(QUERIES, 3, threads=1)
                    entries = hits.certificate.entries
                    assert count <= entries
                    expected = right_hits({i: rows[i] for i in range(entries)}, 3)
                    assert_same_hits(hits, expected)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=search) for _ in range(3)]
        for thread in threads:
            thread.start()
        for first in range(0, 300, 10):
            db.add(rows[first : first + 10])
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors, errors[0]


def test_random_plain_vectors_of_many_norms(path: Path) -> None:
    x = random_rows(2000, 40) * np.geomspace(1e-3, 1e3, 2000, dtype=np.float32)[:, np.newaxis]
    queries = random_rows(4, 40, seed=1)
    db = hiernorm.Database.create(path, 40)
    for first in range(0, 2000, 500):
        db.add(x[first : first + 500])
    assert_same_hits(db.search(queries, 7), expected_hits(queries, x, 7))


def test_a_closed_database_says_so(tmp_path):
    with hiernorm.Database.create(tmp_path / "db", D) as db:
        db.add(vectors(1, 5))
    assert repr(db).endswith("closed)")
    for use in (lambda: db.search(QUERIES), lambda: len(db), lambda: db.add(vectors(1, 5))):
        with pytest.raises(ValueError, match="was closed: open it again"):
            use()
    with hiernorm.Database.open(tmp_path / "db") as db:
        assert len(db) == 5

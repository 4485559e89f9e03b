"""The database as its users see it: what it answers, what it refuses, what it says."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

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
from hiernorm.storage.errors import FormatVersionError, LockedError, NotADatabaseError
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.tensors import TensorFile
from support import assert_same_hits, expected_hits, hn_rows, raises_text, random_rows

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db.hn"


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


@pytest.mark.parametrize("kind", ["hn", "plain"])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.001])
def test_filters_with_cells_keep_the_answer_exact(path: Path, kind: str, share: float) -> None:
    """Clusters, so that cells pay and are used; filters from half of the entries to a few."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, 24))
    features = centres[rng.integers(0, 200, 20_000)] + 0.2 * rng.standard_normal((20_000, 24))
    x = hiernorm.normalize(features, 6, ALPHA)
    split = {"major": 6, "alpha": ALPHA} if kind == "hn" else {}
    db = hiernorm.Database.create(path, 24, **split)
    db.add(x)
    db.delete(range(100))
    assert "cones_16" in TensorFile(next(path.glob("segment-*"))).header.tensors
    allowed = np.flatnonzero(rng.random(20_000) < share)
    alive = allowed[allowed >= 100]
    queries = x[rng.integers(0, 20_000, 8)]
    for k in (1, 10):
        hits = db.search(queries, k, where=allowed)
        assert_same_hits(hits, expected_hits(queries, x[alive], k, ids=alive))
        assert hits.certificate.exact.all()
    if share == 0.5:
        assert hits.certificate.work["scanned"].mean() < len(x) / 2


def test_a_selection_serves_many_searches_of_its_generation(path: Path) -> None:
    db = create(path)
    rows = vectors(1, 50)
    db.add(rows)
    selection = db.select(lambda ids: ids % 2 == 0)
    assert len(selection) == 25
    right = right_hits({i: rows[i] for i in range(0, 50, 2)}, 3)
    assert_same_hits(db.search(QUERIES, 3, where=selection), right)
    db.delete([0])
    with raises_text(
        ValueError, "the selection is of generation 1, the database is at 2: select again"
    ):
        db.search(QUERIES, 3, where=selection)


def test_filters_that_make_no_sense_are_refused(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 10))
    with raises_text(
        ValueError, "where has shape (9,), a mask over the ids of this database has (10,)"
    ):
        db.search(QUERIES, where=np.ones(9, bool))
    with raises_text(
        TypeError,
        "where must return booleans of shape (10,) for that many ids, got int64 of shape (10,)",
    ):
        db.search(QUERIES, where=lambda ids: ids)
    with raises_text(TypeError, "ids must be integers (int64 is used), got dtype float64"):
        db.search(QUERIES, where=[0.5])
    assert (db.search(QUERIES, where=[]).ids == -1).all()


def test_soft_mode_says_how_far_off_it_can_be(path: Path) -> None:
    x, queries = hn_rows(3000, 40, 8, ALPHA), hn_rows(20, 40, 8, ALPHA, seed=1)
    db = hiernorm.Database.create(path, 40, major=8, alpha=ALPHA)
    with small_segments(entries=4000):
        for first in range(0, 3000, 1000):
            db.add(x[first : first + 1000])
    assert db.info()["segments"] > 1
    hits = db.search(queries, 3, beta=0.01, where=lambda ids: ids % 3 != 0)
    allowed = np.flatnonzero(np.arange(3000) % 3)
    true_ids, true_scores = expected_hits(queries, x[allowed], 3, ids=allowed)
    certificate = hits.certificate
    assert not certificate.exact.all()
    np.testing.assert_array_equal(hits.ids[certificate.exact], true_ids[certificate.exact])
    assert (true_scores[:, -1] <= certificate.kth_score + certificate.gap).all()


def test_an_empty_database_finds_nothing(path: Path) -> None:
    db = create(path)
    assert (db.search(QUERIES, 3).ids == -1).all()
    assert db.search(QUERIES, 3).certificate.exact.all()
    assert [len(ids) for ids, _ in db.range(QUERIES, 0.0)] == [0] * 4
    assert len(db) == 0
    assert db.verify().ok
    with pytest.raises(ValueError, match="queries row 0, dimension 0 is NaN"):
        db.search(np.full(D, NAN))


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
    assert copy.verify().ok
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
    (path / "manifest.json").write_text(json.dumps({**manifest, "version": 2}))
    before = contents(path)
    text = (
        f"{path} has format version 2, this hiernorm reads version 1: "
        "install the version of hiernorm that wrote it"
    )
    with raises_text(FormatVersionError, text):
        hiernorm.Database.open(path)
    with raises_text(FormatVersionError, text):
        db.add(vectors(2, 5))
    assert contents(path) == before


def test_a_second_writer_is_told_who_the_first_is(path: Path) -> None:
    db = create(path)
    with WriterLock(path, 0.0):
        with raises_text(
            LockedError,
            f"{path} is being written by process {os.getpid()}: try again when it is done, or "
            "open the database with a longer lock_timeout",
        ):
            db.add(vectors(1, 1))
        assert hiernorm.Database.open(path).search(QUERIES).ids.shape == (4, 10)
    db.add(vectors(1, 1))


def test_a_patient_writer_waits_for_its_turn(path: Path) -> None:
    create(path)
    db = hiernorm.Database.open(path, lock_timeout=30)
    lock = WriterLock(path, 0.0)
    lock.__enter__()
    timer = threading.Timer(0.2, lock.__exit__, (None, None, None))
    timer.start()
    db.add(vectors(1, 1))
    timer.join()
    assert len(db) == 1


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS])
def test_a_folder_that_must_not_be_written_is_read_all_the_same(path: Path, error: int) -> None:
    """As the system reports it; a real read-only folder does not stop the superuser."""
    rows = vectors(1, 10)
    create(path).add(rows)
    db = hiernorm.Database.open(path)
    refused = OSError(error, os.strerror(error), str(path / "lock"))
    with mock.patch("hiernorm.storage.lock.os.open", side_effect=refused):
        for change in (
            lambda: db.add(rows, range(50, 60)),
            lambda: db.delete([1]),
            lambda: db.compact(),
        ):
            with pytest.raises(OSError, match=r"db\.hn was not changed: ") as caught:
                change()
            assert caught.value.errno == error
    assert_equals_model(db, {i: rows[i] for i in range(10)})


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user with limits"
)
def test_a_folder_without_permission_is_not_changed(path: Path) -> None:
    create(path).add(vectors(1, 10))
    path.chmod(0o500)
    try:
        db = hiernorm.Database.open(path)
        (path / "lock").chmod(0o400)
        with pytest.raises(PermissionError, match=r"db\.hn was not changed: Permission denied"):
            db.add(vectors(2, 1))
    finally:
        path.chmod(0o700)


def test_random_plain_vectors_of_many_norms(path: Path) -> None:
    x = random_rows(2000, 40) * np.geomspace(1e-3, 1e3, 2000, dtype=np.float32)[:, np.newaxis]
    queries = random_rows(4, 40, seed=1)
    db = hiernorm.Database.create(path, 40)
    for first in range(0, 2000, 500):
        db.add(x[first : first + 500])
    assert_same_hits(db.search(queries, 7), expected_hits(queries, x, 7))

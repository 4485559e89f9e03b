"""One writer at a time, and folders that must not be written."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from unittest import mock

import pytest

import hiernorm
import hiernorm.storage
from database_support import (
    QUERIES,
    assert_equals_model,
    create,
    vectors,
)
from hiernorm.storage.errors import LockedError
from hiernorm.storage.lock import WriterLock
from support import raises_text


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

"""Vectors and payload change together: a disk that fails, a power failure, damaged files."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

import hiernorm
from database_support import QUERIES, create, small_segments, vectors
from faulty_disk import Disk, FailingCalls
from hiernorm.storage.tensors import TensorFile
from payload_support import assert_payload_fits, payload_of

pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be removed there")
FILES_OS = "hiernorm._files.os"


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_segments(entries=24):
        yield


def _prepared(path: Path) -> None:
    db = create(path)
    rows = vectors(1, 34)
    db.add(rows[:24], range(24), payload=payload_of(rows[:24]))
    db.add(rows[24:], range(24, 34), payload=payload_of(rows[24:]))
    db.delete([3, 30])


def _insert(db: hiernorm.Database, seed: int, ids: list[int]) -> None:
    rows = vectors(seed, len(ids))
    db.upsert(rows, ids, payload=payload_of(rows))


CHANGES: dict[str, Callable[[hiernorm.Database], object]] = {
    "add": lambda db: _insert(db, 2, [50, 51, 52]),
    "upsert": lambda db: _insert(db, 3, [1, 25, 60]),
    "compact": lambda db: db.compact(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_call_that_fails_leaves_vectors_with_their_payload(
    tmp_path: Path, change: str
) -> None:
    make = CHANGES[change]
    _prepared(tmp_path / "origin")
    counting = FailingCalls()
    shutil.copytree(tmp_path / "origin", tmp_path / "counted")
    with mock.patch(FILES_OS, counting):
        make(hiernorm.Database.open(tmp_path / "counted"))
    assert counting.counts["replace"] == 1
    for kind, count in counting.counts.items():
        for number in range(count):
            path = tmp_path / f"{kind}{number}"
            shutil.copytree(tmp_path / "origin", path)
            db = hiernorm.Database.open(path)
            failing = FailingCalls(kind, number, errno.EIO)
            with mock.patch(FILES_OS, failing), pytest.raises(OSError, match="was"):
                make(db)
            reopened = hiernorm.Database.open(path)
            assert_payload_fits(db)
            assert_payload_fits(reopened)
            make(reopened)
            assert_payload_fits(reopened)
            assert reopened.check().ok
            shutil.rmtree(path)


@pytest.mark.parametrize("change", CHANGES)
def test_a_failure_of_the_power_leaves_vectors_with_their_payload(
    tmp_path: Path, change: str
) -> None:
    _prepared(tmp_path / "db")
    db = hiernorm.Database.open(tmp_path / "db")
    disk = Disk(tmp_path / "db")
    with mock.patch(FILES_OS, disk):
        CHANGES[change](db)
    tried = set()
    for moment in disk.moments:
        for remains in moment:
            key = tuple(sorted((name, hash(data)) for name, data in remains.items()))
            if key not in tried:
                tried.add(key)
                (tmp_path / "left").mkdir()
                for name, data in remains.items():
                    (tmp_path / "left" / name).write_bytes(data)
                assert_payload_fits(hiernorm.Database.open(tmp_path / "left"))
                shutil.rmtree(tmp_path / "left")
    assert len(tried) > 10


def test_a_damaged_payload_is_found_before_it_is_used(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    file = sorted((tmp_path / "db").glob("payload-*"))[0]
    whole = file.read_bytes()
    header = TensorFile(file).header
    places = [tensor.begin + (tensor.end - tensor.begin) // 2 for tensor in header.tensors.values()]
    places += [tensor.end - 1 for tensor in header.tensors.values()]
    for place in {*places, 3, 40} & set(range(len(whole))):
        damaged = bytearray(whole)
        damaged[place] ^= 0x81
        file.write_bytes(bytes(damaged))
        try:
            db = hiernorm.Database.open(tmp_path / "db")
        except hiernorm.DatabaseError:
            continue
        assert not db.check().ok
        try:
            assert_payload_fits(db)
            db.search(QUERIES, 3, where="text != 'a' and number > 5")
        except hiernorm.DatabaseError:
            continue
        name = next(n for n, t in header.tensors.items() if t.begin <= place < t.end)
        assert name.startswith(("padding.", "checksums"))
    for length in (0, 7, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(hiernorm.DatabaseError):
            hiernorm.Database.open(tmp_path / "db")
    file.unlink()
    with pytest.raises(hiernorm.DatabaseError, match="is missing"):
        hiernorm.Database.open(tmp_path / "db")

"""Any write, fsync or rename may fail, and the power too: the old data stay, or all of the new."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import hiernorm
from database_support import (
    Model,
    arrays_of,
    assert_equals_model,
    contents,
    create,
    small_segments,
    vectors,
)
from faulty_disk import Disk, FailingCalls, ShortWrites

pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be removed there")
FILES_OS = "hiernorm.storage.files.os"
Change = Callable[[hiernorm.Database], object]


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_segments(entries=24):
        yield


def _prepared(path: Path) -> Model:
    """Two segments, one of them with deleted entries."""
    db = create(path)
    rows = vectors(1, 40)
    db.add(rows[:24], range(24))
    db.add(rows[24:34], range(24, 34))
    db.delete([3, 30])
    assert db.info()["segments"] == 2
    return {i: rows[i] for i in range(34) if i not in (3, 30)}


CHANGES: dict[str, tuple[Change, Callable[[Model], Model]]] = {
    "add": (
        lambda db: db.add(vectors(2, 3), [50, 51, 52]),
        lambda model: {**model, **dict(zip([50, 51, 52], vectors(2, 3), strict=True))},
    ),
    "upsert": (
        lambda db: db.upsert(vectors(3, 3), [1, 25, 60]),
        lambda model: {**model, **dict(zip([1, 25, 60], vectors(3, 3), strict=True))},
    ),
    "delete": (
        lambda db: db.delete([0, 24]),
        lambda model: {i: row for i, row in model.items() if i not in (0, 24)},
    ),
    "compact": (lambda db: db.compact(), dict),
}


def _ids_and_bytes(model: Model) -> tuple[list[int], bytes]:
    ids, rows = arrays_of(model)
    return ids.tolist(), rows.tobytes()


def _state(db: hiernorm.Database) -> tuple[list[int], bytes]:
    return db.ids.tolist(), db.reconstruct(db.ids).tobytes()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("change", CHANGES)
def test_every_call_that_fails_leaves_the_old_data_or_the_new(
    tmp_path: Path, change: str, error: int
) -> None:
    make, expect = CHANGES[change]
    model = _prepared(tmp_path / "origin")
    after = expect(model)
    counting = FailingCalls()
    shutil.copytree(tmp_path / "origin", tmp_path / "counted")
    with mock.patch(FILES_OS, counting):
        make(hiernorm.Database.open(tmp_path / "counted"))
    assert counting.counts["write"] > 3
    assert counting.counts["fsync"] >= 3
    assert counting.counts["replace"] == 1
    for kind, count in counting.counts.items():
        for number in range(count):
            path = tmp_path / f"{kind}{number}"
            shutil.copytree(tmp_path / "origin", path)
            db = hiernorm.Database.open(path)
            with (
                mock.patch(FILES_OS, FailingCalls(kind, number, error)),
                pytest.raises(OSError, match=f"{path.name} was") as caught,
            ):
                make(db)
            assert caught.value.errno == error
            # Only the very last call, the fsync of a manifest that is in its place, comes too late
            # to take the change back; the error says so.
            confirmed = "not changed" in str(caught.value)
            assert confirmed or (kind, number) in (("fsync", count - 1), ("open", count - 1))
            left = model if confirmed else after
            assert_equals_model(db, model)
            reopened = hiernorm.Database.open(path)
            assert_equals_model(reopened, left)
            assert reopened.verify().ok
            # Nothing is left behind, and the change works when the disk does.
            names = {file.name for file in path.iterdir()}
            assert not {name for name in names if name.endswith(".new")} or kind == "replace"
            if confirmed:
                make(db)
                assert_equals_model(db, after)
                assert contents(path).keys() == {
                    "manifest.json",
                    *(record["data"]["file"] for record in _manifest(path)["segments"]),
                    *(
                        record["tombstones"]["file"]
                        for record in _manifest(path)["segments"]
                        if record["tombstones"]
                    ),
                }
            shutil.rmtree(path)


def _manifest(path: Path) -> Any:
    return json.loads((path / "manifest.json").read_text())


@pytest.mark.parametrize("change", CHANGES)
def test_short_writes_are_continued(tmp_path: Path, change: str) -> None:
    make, expect = CHANGES[change]
    model = _prepared(tmp_path / "db")
    db = hiernorm.Database.open(tmp_path / "db")
    with mock.patch(FILES_OS, ShortWrites()):
        make(db)
    assert_equals_model(hiernorm.Database.open(tmp_path / "db"), expect(model))
    assert db.verify().ok


@pytest.mark.parametrize("change", CHANGES)
def test_a_failure_of_the_power_leaves_the_old_data_or_the_new(tmp_path: Path, change: str) -> None:
    """What no fsync has confirmed is gone, torn or there; names as well as contents."""
    make, expect = CHANGES[change]
    model = _prepared(tmp_path / "db")
    before, after = _ids_and_bytes(model), _ids_and_bytes(expect(model))
    db = hiernorm.Database.open(tmp_path / "db")
    disk = Disk(tmp_path / "db")
    with mock.patch(FILES_OS, disk):
        make(db)
    tried = set()
    for number, moment in enumerate(disk.moments):
        for remains in moment:
            key = tuple(sorted((name, hash(data)) for name, data in remains.items()))
            if key in tried:
                continue
            tried.add(key)
            path = tmp_path / f"left{len(tried)}"
            path.mkdir()
            for name, data in remains.items():
                (path / name).write_bytes(data)
            left = hiernorm.Database.open(path)
            assert _state(left) in (before, after), number
            assert left.verify().ok
            assert left.add(vectors(5, 1), [77]) == 1
            shutil.rmtree(path)
    assert len(tried) > 10
    for remains in disk.moments[-1]:
        path = tmp_path / "acknowledged"
        path.mkdir()
        for name, data in remains.items():
            (path / name).write_bytes(data)
        assert _state(hiernorm.Database.open(path)) == after
        shutil.rmtree(path)


def test_a_torn_manifest_is_never_believed(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    manifest = tmp_path / "db" / "manifest.json"
    whole = manifest.read_bytes()
    for length in (*range(0, len(whole), 5), len(whole) - 1):
        manifest.write_bytes(whole[:length])
        if whole[:length] != whole.rstrip():  # only the last line break may be missing
            with pytest.raises(hiernorm.DatabaseError, match=r"manifest\.json is"):
                hiernorm.Database.open(tmp_path / "db")
    manifest.write_bytes(whole)
    (tmp_path / "db" / "manifest.json.new").write_bytes(whole[: len(whole) // 2])
    db = hiernorm.Database.open(tmp_path / "db")
    assert_equals_model(db, model)
    db.delete([0])
    assert not (tmp_path / "db" / "manifest.json.new").exists()

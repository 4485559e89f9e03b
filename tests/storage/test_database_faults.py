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
from faulty_disk import WRITE, Disk, FailingCalls, ShortWrites

pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be removed there")
FILES_OS = "hiernorm._files.os"
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
    assert counting.counts[WRITE] > 3
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
            assert_equals_model(db, left)  # the object is not stale
            reopened = hiernorm.Database.open(path)
            assert_equals_model(reopened, left)
            assert reopened.check().ok
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
    assert db.check().ok


def _lay_out(path: Path, remains: dict[str, bytes]) -> hiernorm.Database:
    path.mkdir()
    for name, data in remains.items():
        (path / name).write_bytes(data)
    return hiernorm.Database.open(path)


def _check_remains(folder: Path, disk: Disk, allowed: tuple[object, ...]) -> int:
    """Whatever moment the power fails at; returns how many different cases there were."""
    tried = set()
    for number, moment in enumerate(disk.moments):
        for remains in moment:
            key = tuple(sorted((name, hash(data)) for name, data in remains.items()))
            if key in tried:
                continue
            tried.add(key)
            left = _lay_out(folder / "left", remains)
            assert _state(left) in allowed, number
            assert left.check().ok
            with mock.patch(FILES_OS, FailingCalls()):
                assert left.add(vectors(5, 1), [77]) == 1
            shutil.rmtree(folder / "left")
    return len(tried)


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
    assert _check_remains(tmp_path, disk, (before, after)) > 10
    for remains in disk.moments[-1]:
        assert _state(_lay_out(tmp_path / "acknowledged", remains)) == after
        shutil.rmtree(tmp_path / "acknowledged")


@pytest.mark.parametrize("change", CHANGES)
def test_a_failure_of_the_power_after_one_of_the_disk(tmp_path: Path, change: str) -> None:
    """An fsync fails, the next change goes on from there, and then the power fails."""
    make, expect = CHANGES[change]
    model = _prepared(tmp_path / "origin")
    before, after = _ids_and_bytes(model), _ids_and_bytes(expect(model))
    number = 0
    while True:
        path = tmp_path / f"fsync{number}"
        shutil.copytree(tmp_path / "origin", path)
        db = hiernorm.Database.open(path)
        disk = Disk(path, failing=number)
        with mock.patch(FILES_OS, disk):
            try:
                make(db)
                break
            except OSError:
                db.upsert(vectors(6, 1), [5])
        new = [vectors(6, 1)[0]]
        with_five = [_ids_and_bytes({**state, 5: new[0]}) for state in (model, expect(model))]
        _check_remains(tmp_path, disk, (before, after, *with_five))
        shutil.rmtree(path)
        number += 1
    assert number >= 3


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    for name in ("weights.safetensors", "notes.new", "x.spool", "segment-1-1.safetensors"):
        (tmp_path / "db" / name).write_text("mine")
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / name).write_text("mine")
    db = hiernorm.Database.open(tmp_path / "db")
    db.add(vectors(2, 3), [50, 51, 52])
    db.compact()
    with pytest.raises(FileExistsError, match="is not empty"):
        db.snapshot(tmp_path / "other")
    for folder in ("db", "other"):
        found = [f.name for f in (tmp_path / folder).iterdir() if f.read_bytes() == b"mine"]
        assert len(found) == 4


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

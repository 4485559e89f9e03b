"""The lock: whose it is, what may lie in its place, and threads that move on together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hiernorm
from database_support import assert_equals_model, create, vectors
from hiernorm.reference import Float32Array
from hiernorm.storage import state as state_module
from hiernorm.storage.errors import DamagedError, DatabaseError, LockedError
from hiernorm.storage.lock import WriterLock

posix = pytest.mark.skipif(os.name == "nt", reason="links, FIFOs and forks are of POSIX systems")


@posix
def test_a_link_in_the_place_of_the_lock_is_not_followed(path: Path, tmp_path: Path) -> None:
    db = create(path)
    precious = tmp_path / "precious.txt"
    precious.write_text("not to be truncated")
    (path / "lock").unlink(missing_ok=True)
    (path / "lock").symlink_to(precious)
    with pytest.raises(DatabaseError, match="lock is not a regular file: remove it"):
        db.add(vectors(1, 3))
    assert precious.read_text() == "not to be truncated"
    (path / "lock").unlink()
    (path / "lock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DatabaseError, match="lock is not a regular file: remove it"):
        db.add(vectors(1, 3))
    assert not (tmp_path / "nowhere").exists()


@posix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["lock", "manifest.json", "segment"])
def test_a_fifo_in_the_place_of_a_file_is_refused(path: Path, name: str) -> None:
    db = create(path)
    db.add(vectors(1, 3))
    file = next(path.glob("segment-*")) if name == "segment" else path / name
    file.unlink()
    os.mkfifo(file)
    if name == "lock":
        with pytest.raises(DatabaseError, match="lock is not a regular file"):
            db.add(vectors(2, 3))
        return
    with pytest.raises(DamagedError):
        hiernorm.Database.open(path)


def test_the_lock_file_keeps_what_is_behind_the_signature(path: Path) -> None:
    db = create(path)
    (path / "lock").write_bytes(b"x" * 100)
    db.add(vectors(1, 3))
    data = (path / "lock").read_bytes()
    assert len(data) == 100
    assert data.split(b"\n")[0] == str(os.getpid()).encode()


@posix
def test_a_child_forked_during_a_write_does_not_keep_the_lock(path: Path) -> None:
    create(path)
    child = -1

    def fork(done: int, total: int | None) -> None:
        nonlocal child
        if child < 0:
            child = os.fork()
            if child == 0:
                time.sleep(30)
                os._exit(0)

    db = hiernorm.Database.open(path)
    try:
        db.add(vectors(1, 5), progress=fork)
        hiernorm.Database.open(path).add(vectors(2, 5))  # the child lives still
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert len(hiernorm.Database.open(path)) == 10


@posix
def test_a_copy_of_the_descriptor_does_not_keep_the_lock(path: Path) -> None:
    create(path)
    with WriterLock(path, 0.0) as lock:
        copy = os.dup(lock._descriptor)  # as a child has that was forked and has not run yet
    try:
        with WriterLock(path, 0.0) as second:
            assert second.is_held
    finally:
        os.close(copy)


@posix
def test_a_forked_child_cannot_go_on_with_the_change_of_its_parent(path: Path) -> None:
    db = create(path)
    child = -1

    def fork(done: int, total: int | None) -> None:
        nonlocal child
        child = os.fork()

    error: BaseException | None = None
    try:
        db.add(vectors(1, 5), progress=fork)
    except DatabaseError as raised:
        error = raised
    if child == 0:
        right = error is not None and "cannot be continued in a forked process" in str(error)
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert error is None
    assert_equals_model(hiernorm.Database.open(path), dict(enumerate(vectors(1, 5))))


@posix
@pytest.mark.parametrize("spilled", [False, True])
def test_a_forked_child_does_not_disturb_the_import_of_its_parent(
    path: Path, spilled: bool
) -> None:
    db = create(path)
    child = -1

    def pieces() -> Iterator[Float32Array]:
        nonlocal child
        yield vectors(1, 5)
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            os.read(reading, 1)  # the child has ended
        yield vectors(2 if child else 3, 5)
        yield vectors(4 if child else 5, 5)

    error: BaseException | None = None
    memory = 40 if spilled else 1 << 20
    with mock.patch("hiernorm.storage.spill_buffer.MEMORY_BYTES", memory):
        try:
            db.add(pieces())
        except BaseException as raised:
            error = raised
    if child == 0:
        right = isinstance(error, DatabaseError) and "in a forked process" in str(error)
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert error is None
    rows = np.concatenate([vectors(seed, 5) for seed in (1, 2, 4)])
    assert_equals_model(hiernorm.Database.open(path), dict(enumerate(rows)))


@posix
@pytest.mark.timeout(60)
def test_a_forked_child_can_write_though_a_thread_of_its_parent_did(path: Path) -> None:
    code = f"""
import os, sys, threading
sys.path[:0] = {sys.path!r}
import hiernorm, numpy as np
db = hiernorm.Database.create({str(path)!r}, 3)
inside, go_on = threading.Event(), threading.Event()
def wait(done, total):
    inside.set(); go_on.wait()
writer = threading.Thread(target=lambda: db.add(np.eye(3), progress=wait))
writer.start(); inside.wait()
child = os.fork()
if child == 0:
    child_db = hiernorm.Database.open({str(path)!r})
    try:
        db.add(np.eye(3) * 2)       # the parent holds the lock: an error, not a wait for ever
        os._exit(1)
    except hiernorm.DatabaseError as error:
        os._exit(0 if "being written by" in str(error) else 2)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set(); writer.join()
assert len(db) == 3
sys.exit(status)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=50, check=False).returncode == 0


def test_refresh_does_not_undo_the_addition_of_another_thread(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 5))
    read_manifest = state_module.read_manifest
    ready, added = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        manifest = read_manifest(*arguments)
        if threading.current_thread().name == "refresher":
            ready.set()
            added.wait(2.0)  # meanwhile another thread commits
        return manifest

    with mock.patch.object(state_module, "read_manifest", slow):
        refresher = threading.Thread(target=db.refresh, name="refresher")
        refresher.start()
        ready.wait()
        db.add(vectors(2, 5))
        added.set()
        refresher.join()
    assert len(db) == 10


def test_an_addition_does_not_undo_the_refresh_of_another_thread(path: Path) -> None:
    db, other = create(path), hiernorm.Database.open(path)
    finish = db._writer._finish

    def slow(transaction: Any) -> Any:
        state = finish(transaction)
        committed.append(state)
        return state

    committed: list[Any] = []
    db._writer._finish = slow
    insert = db._writer.insert

    def insert_then_wait(*arguments: Any, **options: Any) -> Any:
        result = insert(*arguments, **options)
        other.add(vectors(3, 5))  # another process is quick, and this object sees it
        db.refresh()
        return result

    db._writer.insert = insert_then_wait  # type: ignore[method-assign]
    db.add(vectors(2, 5))
    assert len(committed) == 1
    assert len(db) == 10


def test_a_lock_that_is_waited_for_in_vain_is_closed(path: Path) -> None:
    create(path)
    with WriterLock(path, 0.0), pytest.raises(LockedError, match=f"process {os.getpid()}"):
        WriterLock(path, 0.0).__enter__()
    with WriterLock(path, 0.0) as lock:
        assert lock.is_held
    assert not lock.is_held

"""Two runs on one database of COLMAP: one after the other, whatever the first one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from click.testing import CliRunner

from colmap_support import photo_views, sift_bytes, write_database
from hiernorm.adapters.colmap import (
    compare_matches,
    match_database,
    verify_pairs,
)
from hiernorm.adapters.colmap.locking import one_writer
from hiernorm.cli import colmap as commands
from hiernorm.cli.app import app
from hiernorm.storage.errors import LockedError


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    features = [sift_bytes(view, 200) for view in photo_views(4)]
    return write_database(tmp_path_factory.mktemp("original") / "database.db", features)


def rows(path):
    with closing(sqlite3.connect(path)) as opened:
        return [
            opened.execute(f"SELECT * FROM {table} ORDER BY pair_id").fetchall()
            for table in ("matches", "two_view_geometries")
        ]


HOLD = """
import sys
from hiernorm.adapters.colmap.locking import one_writer
with one_writer(sys.argv[1], 0.0):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(database):
    """Another process that matches."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_the_second_run_says_who_holds_the_lock(database, holder, monkeypatch):
    for work in (match_database, verify_pairs):
        with pytest.raises(LockedError, match=f"matched or verified by process {holder.pid}: wait"):
            work(database, wait_seconds=0.05)
    monkeypatch.setattr(commands, "WAIT_SECONDS", 0.05)
    found = CliRunner().invoke(app, ["colmap", "match", str(database)])
    assert found.exit_code == 4
    assert f"process {holder.pid}" in found.stderr
    assert rows(database) == [[], []]


def test_readers_do_not_wait(database, original):
    match_database(database)
    with one_writer(database, 0.0):
        found = []
        reader = threading.Thread(target=lambda: found.append(compare_matches(database).missed))
        reader.start()
        reader.join()
    assert found == [0]


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_lock_that_a_killed_process_left_counts_nothing(database, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    leftover = database.with_name("database.db.lock")
    assert leftover.exists()
    assert match_database(database, wait_seconds=0.0).matched == 6
    assert not leftover.exists() or os.name == "nt"


def test_the_second_run_waits_for_the_first(database, holder):
    done = []
    second = threading.Thread(target=lambda: done.append(match_database(database)))
    second.start()
    second.join(0.2)
    assert done == []
    holder.stdin.close()
    second.join()
    assert done[0].matched == 6


def test_threads_of_one_process_take_turns(database):
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        with one_writer(database, 30), one_writer(database, 0):
            inside += 1
            most = max(most, inside)
            pause.wait(0.02)
            inside -= 1

    pause = threading.Event()
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert not database.with_name("database.db.lock").exists() or os.name == "nt"


def test_runs_at_once_give_what_one_gives(database, original, tmp_path):
    expected = shutil.copy(original, tmp_path / "expected.db")
    match_database(expected)
    verify_pairs(expected)
    words = [sys.executable, "-m", "hiernorm", "colmap", "match", str(database), "--replace"]
    runs = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)
    ]
    for run in runs:
        _, complaint = run.communicate()
        assert run.returncode == 0, complaint
    assert rows(database) == rows(expected)

"""What is written to a database of COLMAP is written whole: locks, full disks, killed processes."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")


from colmap_support import stored_matches
from hiernorm.adapters.colmap import (
    ColmapDatabase,
    MatchingOptions,
    compare_matches,
    match_database,
    verify_pairs,
)
from hiernorm.storage.errors import (
    LockedError,
)


def test_a_locked_database_is_not_changed_and_named(database):
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with (
        ColmapDatabase(database, writable=True, wait_seconds=0.1) as opened,
        pytest.raises(LockedError, match="another process is writing"),
    ):
        opened.write_matches([((1, 2), np.zeros((20, 2)))])
    other.execute("ROLLBACK")
    other.close()
    with ColmapDatabase(database) as opened:
        assert opened.matched_pairs() == set()


def test_readers_beside_the_writer_see_whole_pairs(database):
    rows = np.arange(40).reshape(20, 2)
    with ColmapDatabase(database) as reader, ColmapDatabase(database, writable=True) as writer:
        writer.connection.execute("BEGIN IMMEDIATE")
        writer.connection.execute("INSERT INTO matches VALUES (2147483649, 20, 2, NULL)")
        assert reader.matches((1, 2)) is None
        writer.connection.execute("ROLLBACK")
        writer.write_matches([((1, 2), rows)])
        np.testing.assert_array_equal(reader.matches((1, 2)), rows)


def test_a_full_disk_keeps_what_was_written(database):
    rows = np.arange(40).reshape(20, 2)
    with ColmapDatabase(database, writable=True) as opened:
        opened.write_matches([((1, 2), rows)])
        pages = opened.connection.execute("PRAGMA page_count").fetchone()[0]
        opened.connection.execute(f"PRAGMA max_page_count = {pages}")
        large = np.zeros((100_000, 2))
        with pytest.raises(OSError, match="no space left"):
            opened.write_matches([((1, 3), rows), ((1, 4), large)])
        np.testing.assert_array_equal(opened.matches((1, 2)), rows)
        assert opened.matches((1, 3)) is None  # of the same transaction
    assert match_database(database).kept == 1


def test_features_are_written_whole_or_not_at_all(database):
    rng = np.random.default_rng(0)
    keypoints, rows = np.float32(rng.uniform(0, 90, (9, 4))), np.float32(rng.normal(size=(9, 16)))
    with ColmapDatabase(database, writable=True) as opened:
        before = opened.keypoints(2)
        pages = opened.connection.execute("PRAGMA page_count").fetchone()[0]
        opened.connection.execute(f"PRAGMA max_page_count = {pages}")
        large = (np.zeros((100_000, width), np.float32) for width in (4, 16))
        with pytest.raises(OSError, match="no space left"):
            opened.write_features(2, *large)
        np.testing.assert_array_equal(opened.keypoints(2), before)
        opened.write_features(1, keypoints, rows)
        np.testing.assert_array_equal(opened.keypoints(1), keypoints)
        np.testing.assert_array_equal(opened.descriptors(1), rows)


def test_verification_needs_room_before_colmap_begins(database, monkeypatch):
    match_database(database)
    usage = shutil.disk_usage(database.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2**20))
    with pytest.raises(OSError, match=r"no space left .* 1,048,576 are free"):
        verify_pairs(database)


def test_replacing_keeps_the_former_matches_until_the_new_ones_are_written(database):
    class StopError(Exception):
        pass

    def stop(done, total):
        if done == 2:
            raise StopError

    match_database(database)
    before = stored_matches(database)
    other = MatchingOptions(max_ratio=0.7)
    with pytest.raises(StopError):
        match_database(database, options=other, replace=True, threads=1, progress=stop)
    between = stored_matches(database)
    assert between[2:] == before[2:]
    assert all(new != old for new, old in zip(between[:2], before[:2], strict=True))
    again = match_database(database, options=other, replace=True)
    assert (again.matched, again.kept) == (6, 0)
    assert compare_matches(database, other).missed == 0


KILLED = """
import os, signal, sys
import hiernorm.adapters.colmap.matcher as matcher
matcher.COMMIT_SECONDS = 0.0
def kill(done, total):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)
matcher.match_database(sys.argv[1], threads=1, progress=kill)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_replacing_that_is_killed_loses_no_pair(database):
    match_database(database)
    before = stored_matches(database)
    code = KILLED.replace("threads=1", "threads=1, replace=True")
    done = subprocess.run([sys.executable, "-c", code, str(database)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert stored_matches(database) == before


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_process_leaves_whole_pairs_and_the_rest_is_done_later(database):
    done = subprocess.run([sys.executable, "-c", KILLED, str(database)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    report = match_database(database)
    assert (report.matched, report.kept) == (3, 3)
    found = compare_matches(database)
    assert (len(found.pairs), found.missed, found.added) == (6, 0, 0)

"""Geometric verification: COLMAP's own result, and no kill takes a stored match."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from colmap_support import photo_views, sift_bytes, write_database  # noqa: E402
from hiernorm.adapters.colmap import (  # noqa: E402
    ColmapDatabase,
    exhaustive_pairs,
    match_database,
    verify_pairs,
    write_pairs,
)
from hiernorm.adapters.colmap.mapping import SEED  # noqa: E402

pycolmap.logging.minloglevel = 2


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    features = [sift_bytes(view, 200) for view in photo_views(5)]
    features[4] = tuple(rows[:20] for rows in features[4])  # has too few matches
    path = write_database(tmp_path_factory.mktemp("original") / "database.db", features)
    match_database(path)
    return path


@pytest.fixture
def database(original, tmp_path):
    return shutil.copy(original, tmp_path / "database.db")


def rows(path, table):
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(f"SELECT * FROM {table} ORDER BY pair_id").fetchall()


def execute(path, statement):
    with closing(sqlite3.connect(path)) as opened:
        opened.execute(statement)
        opened.commit()


CAMERAS = {
    "one": "UPDATE cameras SET prior_focal_length = 0",
    "of known focal length": "UPDATE cameras SET prior_focal_length = 1",
    "one for each image": "UPDATE images SET camera_id = image_id",
}


@pytest.mark.parametrize("cameras", CAMERAS)
@pytest.mark.parametrize("threads", [1, 3])
def test_geometries_equal_what_colmap_writes(database, tmp_path, threads, cameras):
    for number in range(2, 6):
        execute(
            database,
            "INSERT INTO cameras (camera_id, model, width, height, params, prior_focal_length) "
            f"SELECT {number}, model, width, height, params, 0 FROM cameras WHERE camera_id = 1",
        )
    execute(database, CAMERAS[cameras])
    rng = np.random.default_rng(0)
    with ColmapDatabase(database, writable=True) as opened:  # matches without a geometry
        wrong = [np.column_stack((np.arange(count), rng.permutation(count))) for count in (15, 19)]
        opened.write_matches([((2, 5), wrong[0]), ((3, 5), wrong[1])])
    theirs = shutil.copy(database, tmp_path / "theirs.db")
    with ColmapDatabase(theirs) as opened:
        images = opened.images()
    pairs = exhaustive_pairs(images)
    write_pairs(tmp_path / "pairs.txt", pairs, images)
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = SEED
    pycolmap.verify_matches(str(theirs), str(tmp_path / "pairs.txt"), options=options)
    seen = []
    count = verify_pairs(database, threads=threads, progress=lambda *now: seen.append(now))
    found = rows(database, "two_view_geometries")
    assert found == rows(theirs, "two_view_geometries")
    assert len(found) == 10
    assert count == sum(row[1] > 0 for row in found)
    assert 3 <= count < 10
    assert seen == [(done, 10) for done in range(1, 11)]


def test_an_older_schema_is_updated_by_colmap(database):
    expected = shutil.copy(database, database.with_name("expected.db"))
    verify_pairs(expected)
    for column in ("camera1", "camera2"):
        execute(database, f"ALTER TABLE two_view_geometries DROP COLUMN {column}")
    execute(database, "PRAGMA user_version = 3900")
    verify_pairs(database)
    assert rows(database, "two_view_geometries") == rows(expected, "two_view_geometries")


TOUCHED = """
import sys
from hiernorm.adapters.colmap import verify_pairs
print(verify_pairs(sys.argv[1]))
"""


def test_verification_never_touches_the_matches(database):
    for change in ("INSERT", "UPDATE", "DELETE"):
        execute(
            database,
            f"CREATE TRIGGER no_{change} BEFORE {change} ON matches "
            "BEGIN SELECT RAISE(ABORT, 'matches are changed'); END",
        )
    done = subprocess.run([sys.executable, "-c", TOUCHED, str(database)], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_pairs_without_matches_are_left_out(database):
    execute(database, "DELETE FROM matches WHERE pair_id = 2147483649")  # of images 1 and 2
    verify_pairs(database)
    assert len(rows(database, "matches")) == len(rows(database, "two_view_geometries")) == 9


def test_pairs_in_the_wrong_order_are_refused(database):
    for work in (match_database, verify_pairs):
        with pytest.raises(ValueError, match=r"smaller image id first, got \(2, 1\)"):
            work(database, [(2, 1)])


def test_few_matches_are_kept_and_not_verified(database):
    few = np.arange(10).repeat(2).reshape(10, 2)
    with ColmapDatabase(database, writable=True) as opened:
        opened.write_matches([((1, 2), few)])
    assert verify_pairs(database, [(1, 2)]) == 0
    with ColmapDatabase(database) as opened:
        np.testing.assert_array_equal(opened.matches((1, 2)), few)


KILLED = """
import os, signal, sys
import pycolmap
import hiernorm.adapters.colmap.verification as verification
from hiernorm.adapters.colmap import ColmapDatabase
path, moment = sys.argv[1:]
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
verification.COMMIT_SECONDS = 0.0
seen = None
if moment == "in COLMAP":
    pycolmap.estimate_two_view_geometry = kill
if moment == "before the first row":
    ColmapDatabase.write_geometries = kill
if moment == "in a transaction":
    def trace(statement):
        if statement.startswith("COMMIT"):
            kill()
    opened = ColmapDatabase.__init__
    def init(self, *given, **named):
        opened(self, *given, **named)
        self.require_unlocked()
        self.require_unlocked = lambda: None
        self.connection.set_trace_callback(trace)
    ColmapDatabase.__init__ = init
if moment == "after three pairs":
    seen = lambda done, total: done == 3 and kill()
verification.verify_pairs(path, threads=1, progress=seen)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("moment", "kept"),
    [
        ("in COLMAP", 0),
        ("before the first row", 0),
        ("in a transaction", 0),
        ("after three pairs", 3),
    ],
)
def test_a_kill_takes_no_match_and_verification_is_continued(original, database, moment, kept):
    done = subprocess.run([sys.executable, "-c", KILLED, str(database), moment])
    assert done.returncode == -signal.SIGKILL
    assert rows(database, "matches") == rows(original, "matches")
    assert len(rows(database, "two_view_geometries")) == kept
    expected = shutil.copy(original, database.with_name("expected.db"))
    left = []
    assert verify_pairs(database, progress=lambda *now: left.append(now)) == verify_pairs(expected)
    assert len(left) == 10 - kept
    for table in ("matches", "two_view_geometries"):
        assert rows(database, table) == rows(expected, table)

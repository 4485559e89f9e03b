"""Databases that this user may only read: they are read, and a change says what is missing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from colmap_support import photo_views, sift_bytes, write_database
from hiernorm.adapters.colmap import match_database

pytestmark = pytest.mark.skipif(os.name == "nt", reason="rights are others there")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    features = [sift_bytes(view, 120) for view in photo_views(3)]
    path = write_database(tmp_path_factory.mktemp("original") / "database.db", features)
    match_database(path)
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)  # as COLMAP leaves it
    return path


@pytest.fixture
def folder():
    """A folder that any user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        yield Path(made)
        os.chmod(made, 0o755)


COMMAND = """
import os, sys
from click.testing import CliRunner
from hiernorm.cli.app import app
warm, path, *words = sys.argv[1:]
run = lambda path: CliRunner().invoke(app, ["colmap", words[0], path, *words[1:]])
assert run(warm).exit_code == 0  # all modules are loaded: the next user may not reach them
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
done = run(path)
sys.stdout.write(done.stdout)
sys.stderr.write(done.stderr)
sys.exit(done.exit_code)
"""


def run(original, path, *words):
    """Run a command as a user who may write neither the file nor its folder."""
    warm = shutil.copy(original, Path(original).with_name("warm.db"))
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    return subprocess.run(
        [sys.executable, "-c", COMMAND, str(warm), str(path), *words],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("words", [("compare",), ("pairs", "--top", "1")])
def test_a_database_in_a_closed_folder_is_read(original, folder, words):
    path = Path(shutil.copy(original, folder / "database.db"))
    done = run(original, path, *words)
    assert done.returncode == 0, done.stderr
    assert "00.png 01.png" in done.stdout
    assert [file.name for file in folder.iterdir()] == ["database.db"]


@pytest.mark.parametrize("words", [("match",), ("match", "--replace", "--no-verify")])
def test_matching_in_a_closed_folder_says_what_is_missing(original, folder, words):
    path = Path(shutil.copy(original, folder / "database.db"))
    done = run(original, path, *words)
    assert done.returncode == 1
    assert f"{path} may not be written by this user: copy the database" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_log_with_changes_in_a_closed_folder_is_not_passed_over(original, folder):
    source = Path(shutil.copy(original, original.with_name("open.db")))
    with closing(sqlite3.connect(source, isolation_level=None)) as opened:
        opened.execute("DELETE FROM matches WHERE pair_id = 2147483649")
        for ending in ("", "-wal"):
            shutil.copy(f"{source}{ending}", folder / f"database.db{ending}")
    os.chmod(folder / "database.db-wal", 0o444)
    done = run(original, folder / "database.db", "compare")
    assert done.returncode == 1
    assert "cannot be read: database.db-wal beside it holds changes" in done.stderr
    assert len(done.stderr.splitlines()) == 1

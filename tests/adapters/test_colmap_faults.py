"""Databases of COLMAP that are foreign or damaged."""

from __future__ import annotations

import os
import re
import sqlite3

import numpy as np
import pytest

pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from click.testing import CliRunner

from colmap_support import stored_matches
from hiernorm.adapters.colmap import (
    ColmapDatabase,
    DescriptorType,
    match_database,
    verify_pairs,
)
from hiernorm.adapters.colmap.mapping import explained_errors
from hiernorm.cli.app import app
from hiernorm.storage.errors import (
    DamagedError,
    FormatVersionError,
    LockedError,
    NotADatabaseError,
)


def change(path, statement, values=()):
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_missing_file_is_not_created(tmp_path):
    with pytest.raises(NotADatabaseError, match="no database at"):
        match_database(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_of_colmap_are_named(tmp_path):
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(NotADatabaseError, match="is not a database of COLMAP"):
        ColmapDatabase(tmp_path / "text.db")
    change(tmp_path / "other.db", "CREATE TABLE songs (name TEXT)")
    with pytest.raises(NotADatabaseError, match="no table 'images'"):
        ColmapDatabase(tmp_path / "other.db")


def test_another_schema_is_named(database):
    change(database, "ALTER TABLE matches RENAME COLUMN data TO blob")
    with pytest.raises(FormatVersionError, match="table 'matches' has no column data"):
        ColmapDatabase(database)


def test_databases_without_types_hold_sift(database):
    with ColmapDatabase(database) as opened:
        expected = opened.descriptors(1)
    change(database, "ALTER TABLE descriptors DROP COLUMN type")
    with ColmapDatabase(database) as opened:
        np.testing.assert_array_equal(opened.descriptors(1), expected)


def test_float_descriptors_of_128_bytes_are_no_sift(database):
    rng = np.random.default_rng(0)
    keypoints, rows = np.float32(rng.uniform(0, 90, (9, 4))), np.float32(rng.normal(size=(9, 32)))
    with ColmapDatabase(database, writable=True) as opened:
        opened.write_features(1, keypoints, rows)
        assert opened.descriptor_type(1) == DescriptorType.UNDEFINED
        np.testing.assert_array_equal(opened.descriptors(1), rows)
        opened.write_features(3, keypoints[:0], rows[:0])  # a photo without features
        assert opened.descriptors(3).shape == (0, 32)
        with pytest.raises(ValueError, match=r"'00.png' has 8 keypoints and 9 descriptors"):
            opened.write_features(1, keypoints[1:], rows)
    change(database, "ALTER TABLE descriptors DROP COLUMN type")
    with ColmapDatabase(database, writable=True) as opened:
        before = opened.descriptors(2)
        with pytest.raises(FormatVersionError, match="has no types of descriptors"):
            opened.write_features(2, keypoints, rows)
        np.testing.assert_array_equal(opened.descriptors(2), before)


BROKEN = {
    "no keypoints": (
        "DELETE FROM keypoints WHERE image_id = 3",
        r"image '02.png' has no keypoints",
    ),
    "few keypoints": (
        "UPDATE keypoints SET rows = 5, data = SUBSTR(data, 1, 5 * cols * 4) WHERE image_id = 3",
        r"name keypoint \d+ of image '02.png', which has 5 keypoints",
    ),
    "cut keypoints": ("UPDATE keypoints SET rows = rows + 1", r"keypoints of image .* should take"),
    "narrow keypoints": (
        "UPDATE keypoints SET cols = 1, rows = rows * cols WHERE image_id = 3",
        "keypoints of image '02.png' have 1 columns, expected 2, 4 or 6",
    ),
    "cut matches": ("UPDATE matches SET rows = rows + 1", r"matches of pair \(1, 2\) should take"),
    "one column": ("UPDATE matches SET rows = 2 * rows, cols = 1", "1 columns, expected 2"),
    "wrong matches": (
        "UPDATE matches SET data = RANDOMBLOB(LENGTH(data))",
        r"matches of pair \(1, 2\) name keypoint",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_would_end_colmap_is_an_error_before_it_begins(database, broken):
    statement, text = BROKEN[broken]
    match_database(database)
    change(database, statement)
    with pytest.raises((DamagedError, KeyError), match=text):
        verify_pairs(database)


def test_verification_of_a_locked_database_is_refused(database):
    match_database(database)
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockedError, match="another process is writing"):
        verify_pairs(database, wait_seconds=0.1)
    with pytest.raises(LockedError), explained_errors(database):  # locked while COLMAP opens it
        raise RuntimeError("No registered database factory succeeded.")
    other.close()
    assert verify_pairs(database) == 6


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_disk_that_fails_is_no_damaged_database(database):
    # The log's index, a file beside the database, cannot be written.
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    os.symlink("/dev/full", f"{database}-shm")
    with pytest.raises(OSError, match=r"cannot be read or written .*: is the disk full"):
        ColmapDatabase(database)


@pytest.mark.parametrize("command", ["match", "pairs"])
def test_databases_without_images_or_descriptors_say_so(database, command):
    change(database, "DELETE FROM descriptors WHERE image_id = 2")
    if command == "pairs":
        found = CliRunner().invoke(app, ["colmap", "pairs", str(database)])
        assert found.exit_code == 0
        assert "1 image without descriptors was left out: 01.png" in found.output
    change(database, "DELETE FROM descriptors WHERE image_id > 1")
    change(database, "DELETE FROM images WHERE image_id > 1")
    found = CliRunner().invoke(app, ["colmap", command, str(database)])
    assert found.exit_code == 1
    assert "has 1 image" in found.output
    assert "run COLMAP's feature extraction" in found.output


def test_missing_descriptors_are_named_and_other_pairs_can_be_matched(database):
    change(database, "DELETE FROM descriptors WHERE image_id = 2")
    with pytest.raises(KeyError, match=r"image '01.png' has no descriptors"):
        match_database(database)
    assert match_database(database, [(1, 3), (1, 4)]).matched == 2


def test_mixed_types_are_named(database):
    change(database, "UPDATE descriptors SET type = 1 WHERE image_id = 3")
    with pytest.raises(ValueError, match=r"SIFT \(00.png\), ALIKED_N16ROT \(02.png\)"):
        match_database(database)


def test_an_unknown_type_is_named(database):
    change(database, "UPDATE descriptors SET type = 77 WHERE image_id = 3")
    with pytest.raises(FormatVersionError, match="descriptors of type 77"):
        match_database(database)


def test_cut_descriptors_are_damage(database):
    change(database, "UPDATE descriptors SET rows = rows + 1 WHERE image_id = 1")
    with pytest.raises(DamagedError, match=r"descriptors of image '00.png' should take"):
        match_database(database)


ODD_DESCRIPTORS = {
    "negative": ("SET rows = -1", r"descriptors of image '02.png' have the shape -1 x 128"),
    "negative width": (
        "SET cols = -128",
        r"descriptors of image '02.png' have the shape \d+ x -128",
    ),
    "text": ("SET cols = 'wide'", r"descriptors of image '02.png' have the shape \d+ x 'wide'"),
    "text in rows": ("SET rows = 'many'", r"descriptors of image '02.png' have 'many' rows"),
    "narrow": (
        "SET cols = 64, data = SUBSTR(data, 1, rows * 64)",
        r"different dimensions cannot be matched, found 128 \(00.png\), 64 \(02.png\)",
    ),
    "short": ("SET data = SUBSTR(data, 1, 99)", r"descriptors of image '02.png' should take .* 99"),
}


@pytest.mark.parametrize("command", ["match", "match --replace", "pairs", "compare"])
@pytest.mark.parametrize("odd", ODD_DESCRIPTORS)
def test_odd_descriptors_are_named_and_nothing_is_deleted(database, odd, command):
    statement, text = ODD_DESCRIPTORS[odd]
    match_database(database)
    change(database, f"UPDATE descriptors {statement} WHERE image_id = 3")
    before = stored_matches(database)
    name, *options = command.split()
    found = CliRunner().invoke(app, ["colmap", name, str(database), *options])
    assert found.exit_code in (1, 3)
    assert re.search(text, found.stderr)
    assert len(found.stderr.splitlines()) == 1
    assert stored_matches(database) == before


@pytest.mark.parametrize("command", ["match --replace", "pairs", "compare"])
def test_descriptors_that_are_not_finite_are_named_and_no_pair_is_lost(database, command):
    match_database(database)
    before = stored_matches(database)
    rows = np.float32(np.random.default_rng(0).normal(size=(120, 32)))
    change(database, "UPDATE descriptors SET type = -1, rows = 120, data = ?", (rows.tobytes(),))
    rows[7, 3] = np.nan
    change(database, "UPDATE descriptors SET data = ? WHERE image_id = 3", (rows.tobytes(),))
    name, *options = command.split()
    found = CliRunner().invoke(app, ["colmap", name, str(database), *options, "--threads", "1"])
    assert found.exit_code == 3
    assert "'02.png' (type UNDEFINED), 32 float32 values each, have NaN" in found.stderr
    assert [row[0] for row in stored_matches(database)] == [row[0] for row in before]


def test_an_image_without_features_has_no_matches(database):
    change(database, "UPDATE descriptors SET rows = 0, data = NULL WHERE image_id = 1")
    match_database(database, [(1, 2)])
    with ColmapDatabase(database) as opened:
        assert opened.matches((1, 2)).shape == (0, 2)

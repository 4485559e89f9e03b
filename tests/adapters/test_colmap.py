"""COLMAP with exact matches: its own brute force, match for match, in its own database."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from colmap_support import colmap_brute_force, photo_views, sift_bytes, write_database  # noqa: E402
from hiernorm.adapters.colmap import (  # noqa: E402
    ColmapDatabase,
    DescriptorType,
    MatchingOptions,
    compare_matches,
    exhaustive_pairs,
    match_database,
    read_pairs,
    retrieve_pairs,
    sequential_pairs,
    verify_pairs,
    write_pairs,
)
from hiernorm.byte_matching import ByteDescriptors, ByteRotation, match_bytes  # noqa: E402

pycolmap.logging.minloglevel = 2


@pytest.fixture(scope="module")
def features():
    return [sift_bytes(view) for view in photo_views(4)]


@pytest.fixture
def database(features, tmp_path):
    return write_database(tmp_path / "database.db", features)


@pytest.mark.parametrize(
    "changes",
    [{}, {"cross_check": False}, {"max_ratio": 0.95}, {"max_ratio": 0.6, "max_distance": 0.4}],
    ids=str,
)
def test_matches_equal_colmap_brute_force_on_real_photos(features, changes):
    rows = [descriptors for _, descriptors in features]
    rotation = ByteRotation(rows[0])
    sets = [ByteDescriptors(one, rotation) for one in rows]
    for other in (1, 3):
        expected = colmap_brute_force(rows[0], rows[other], **changes)
        assert len(expected) > 20
        assert_array_equal(match_bytes(sets[0], sets[other], **changes).pairs, expected)


PHOTOS = Path(os.environ.get("HIERNORM_PHOTOS", "../shared/data/photos")) / "castle"


@pytest.mark.long
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="needs photos of a castle")
def test_matches_equal_colmap_brute_force_on_a_castle():
    import cv2

    files = sorted(PHOTOS.glob("*.jpg"))[:2]
    rows = [sift_bytes(cv2.imread(str(file)), limit=4000)[1] for file in files]
    rotation = ByteRotation(rows[0])
    found = match_bytes(*(ByteDescriptors(one, rotation) for one in rows)).pairs
    assert_array_equal(found, colmap_brute_force(*rows))


def test_the_database_equals_what_colmap_writes(features, tmp_path):
    ours, theirs = (write_database(tmp_path / name, features) for name in ("ours.db", "theirs.db"))
    options = pycolmap.FeatureMatchingOptions()
    options.sift.cpu_brute_force_matcher = True
    options.skip_geometric_verification = True
    options.num_threads = 1
    pycolmap.match_exhaustive(str(theirs), matching_options=options)
    report = match_database(ours, threads=2)
    assert (report.matched, report.kept) == (6, 0)
    tables = []
    for path in (ours, theirs):
        with sqlite3.connect(path) as connection:
            tables.append(connection.execute("SELECT * FROM matches ORDER BY pair_id").fetchall())
        connection.close()
    assert tables[0] == tables[1]
    assert report.matches == sum(row[1] for row in tables[0]) > 100


def test_matching_goes_on_where_it_was_interrupted(database):
    class StopError(Exception):
        pass

    def stop(done, total):
        if done == 2:
            raise StopError

    with pytest.raises(StopError):
        match_database(database, threads=1, progress=stop)
    again = match_database(database, threads=1)
    assert (again.matched, again.kept) == (4, 2)
    assert compare_matches(database).missed == 0


def test_threads_and_memory_do_not_change_the_matches(features, tmp_path):
    written = []
    for number, (threads, memory) in enumerate([(1, 2**30), (3, 0)]):
        path = write_database(tmp_path / f"{number}.db", features)
        match_database(path, threads=threads, memory=memory)
        with ColmapDatabase(path) as opened:
            pairs = exhaustive_pairs(opened.images())
            written.append([opened.matches(pair).tolist() for pair in pairs])
    assert written[0] == written[1]


def test_replacing_matches_drops_the_geometries_that_came_from_the_former_ones(database):
    match_database(database)
    assert verify_pairs(database) > 0
    report = match_database(database, [(1, 2)], replace=True)
    assert (report.matched, report.kept) == (1, 0)
    with pycolmap.Database.open(str(database)) as opened:
        assert not opened.exists_two_view_geometry(1, 2)
        assert opened.exists_two_view_geometry(1, 3)


def test_pairs_without_verified_matches_are_not_counted(database):
    match_database(database, [(1, 2)])
    match_database(database, [(1, 3)], MatchingOptions(min_num_inliers=10_000))  # none are written
    assert verify_pairs(database, [(1, 2), (1, 3)]) == 1
    assert verify_pairs(database, [(1, 3)]) == 0


def test_pairs_with_few_matches_get_none_as_in_colmap(database):
    with ColmapDatabase(database) as opened:
        pairs = exhaustive_pairs(opened.images())
    match_database(database, pairs[:1], MatchingOptions(min_num_inliers=10_000))
    with ColmapDatabase(database) as opened:
        assert opened.matches(pairs[0]).shape == (0, 2)
        assert opened.matches(pairs[1]) is None


def test_float_descriptors_are_matched_by_their_angles(features, tmp_path):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((60, 32))
    rows = [base + 0.1 * rng.standard_normal(base.shape) for _ in range(2)]
    rows = [np.float32(one / np.linalg.norm(one, axis=1, keepdims=True)) for one in rows]
    keypoints = rng.uniform(0, 300, (60, 2)).astype(np.float32)
    path = write_database(
        tmp_path / "floats.db", [(keypoints, one) for one in rows], DescriptorType.ALIKED_N32
    )
    match_database(path)
    with ColmapDatabase(path) as opened:
        assert_array_equal(opened.descriptors(1), rows[0])
        assert opened.descriptor_type(1) == DescriptorType.ALIKED_N32
        found = opened.matches((1, 2))
    scores = rows[0].astype(np.float64) @ rows[1].T.astype(np.float64)
    mutual = np.flatnonzero(scores.argmax(axis=0)[scores.argmax(axis=1)] == np.arange(60))
    expected = [(i, scores[i].argmax()) for i in mutual if scores[i].max() >= 0.85]
    assert_array_equal(found, expected)


def test_comparison_counts_what_is_missed_and_added(database):
    match_database(database)
    with ColmapDatabase(database, writable=True) as opened:
        exact = opened.matches((1, 2))
        changed = exact[3:].copy()
        changed[0, 1] = (changed[0, 1] + 1) % 200
        opened.write_matches([((1, 2), changed)])
    found = compare_matches(database)
    assert (found.missed, found.added) == (4, 1)
    first = found.pairs[0]
    assert first.names == ("00.png", "01.png")
    assert first.exact == len(exact)
    assert_array_equal(first.added, changed[:1])


def test_pair_lists(database, tmp_path):
    with ColmapDatabase(database) as opened:
        images = opened.images()
        assert len(exhaustive_pairs(images)) == 6
        assert sequential_pairs(images, 1) == [(1, 2), (2, 3), (3, 4)]
        assert len(retrieve_pairs(opened, 3)) == 6
        nearest = retrieve_pairs(opened, 1)
    assert (1, 2) in nearest
    write_pairs(tmp_path / "pairs.txt", [(1, 3), (2, 4)], images)
    assert (tmp_path / "pairs.txt").read_text() == "00.png 02.png\n01.png 03.png\n"
    assert read_pairs(tmp_path / "pairs.txt", images) == [(1, 3), (2, 4)]
    (tmp_path / "odd.txt").write_text("# a comment\n\n01.png 00.png\n00.png 01.png\n")
    assert read_pairs(tmp_path / "odd.txt", images) == [(1, 2)]
    (tmp_path / "wrong.txt").write_text("00.png 09.png\n")
    with pytest.raises(ValueError, match=r"line 1: no image '09.png'"):
        read_pairs(tmp_path / "wrong.txt", images)


def test_retrieval_is_the_same_for_any_number_of_threads(database):
    with ColmapDatabase(database) as opened:
        assert retrieve_pairs(opened, 1, threads=1) == retrieve_pairs(opened, 1, threads=3)


def test_a_missing_pycolmap_is_named_with_its_extra():
    code = """
import sys
sys.modules["pycolmap"] = None
from hiernorm.adapters.colmap import map_database
try:
    map_database("a.db", ".", "out")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "this needs pycolmap: pip install 'hiernorm[colmap]'\n"


def run(*words):
    from click.testing import CliRunner

    from hiernorm.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words])


def test_commands_match_compare_and_list_pairs(database, tmp_path):
    done = run("colmap", "match", database, "--sequential", 1, "--json")
    facts = json.loads(done.output)
    assert (facts["pairs matched"], facts["pairs kept"]) == (3, 0)
    assert facts["pairs verified"] > 0
    (tmp_path / "pairs.txt").write_text("00.png 01.png\n00.png 02.png\n")
    done = run("colmap", "match", database, "--pairs", tmp_path / "pairs.txt", "--no-verify")
    assert re.search(r"pairs matched +1\n", done.output)
    assert "1 pairs had matches and were kept" in done.output
    done = run("colmap", "match", database, "--retrieve", 3, "--no-verify", "--json")
    assert json.loads(done.output)["pairs matched"] == 2
    done = run("colmap", "compare", database, "-o", tmp_path / "compare.png")
    assert done.exit_code == 0, done.output
    assert re.search(r"^all +[\d,]+ +0 \( +0.0%\) +0 \( +0.0%\)$", done.output, re.MULTILINE)
    assert (tmp_path / "compare.png").stat().st_size > 1000
    words = ("colmap", "compare", database, "--photos", tmp_path)
    done = run(*words, "-o", tmp_path / "wrong.png")
    assert done.exit_code == 1
    assert re.search(r"^all +[\d,]+ +0 ", done.stdout, re.MULTILINE)
    assert f"{tmp_path} has no photo 00.png: expected the folder of the photos" in done.stderr
    assert run(*words).exit_code == 2  # photos without a picture
    done = run("colmap", "pairs", database, "--top", 1)
    assert "00.png 01.png\n" in done.output
    assert run("colmap", "match", database, "--retrieve", 1, "--sequential", 1).exit_code == 2
    assert run("colmap", "match", tmp_path / "none.db").exit_code == 5

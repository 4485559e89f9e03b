"""hloc's files and its nearest-neighbour matcher, by its documented conventions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hiernorm.adapters.hloc import NearestNeighbor, match_features, pair_name
from hiernorm.storage.errors import DamagedError

h5py = pytest.importorskip("h5py", reason="needs h5py")


def unit_rows(rng, n: int, dim: int = 32):
    rows = rng.standard_normal((n, dim))
    return np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def views(n: int = 120, noise: float = 0.08):
    rng = np.random.default_rng(0)
    rows = unit_rows(rng, n)
    seen = rows[rng.permutation(n)] + np.float32(noise) * rng.standard_normal(rows.shape)
    return rows, np.float32(seen / np.linalg.norm(seen, axis=1, keepdims=True))


def plain(a, b, ratio=None, distance=None, mutual=True):
    """hloc's matcher in plain NumPy: the dense matrix, both directions."""

    def one_way(similarities):
        order = np.argsort(-similarities, axis=1, kind="stable")[:, :2]
        best = np.take_along_axis(similarities, order, axis=1)
        squares = 2 * (1 - best)
        passed = np.ones(len(best), bool)
        if ratio:
            passed &= squares[:, 0] <= ratio**2 * squares[:, 1]
        if distance:
            passed &= squares[:, 0] <= distance**2
        return np.where(passed, order[:, 0], -1), np.where(passed, (best[:, 0] + 1) / 2, 0)

    similarities = a.astype(np.float64) @ b.T.astype(np.float64)
    matches, scores = one_way(similarities)
    if mutual:
        back, _ = one_way(similarities.T)
        ok = (matches >= 0) & (back[np.maximum(matches, 0)] == np.arange(len(a)))
        matches = np.where(ok, matches, -1)
    return matches, np.float32(scores)


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize(
    ("ratio", "distance"), [(None, None), (0.8, None), (0.9, 0.5), (None, 0.3)]
)
def test_matches_as_hloc_does(ratio, distance, mutual):
    a, b = views()
    matcher = NearestNeighbor(ratio, distance, mutual)
    found = matcher({"descriptors0": a.T, "descriptors1": b.T})
    matches, scores = plain(a, b, ratio, distance, mutual)
    assert_array_equal(found["matches0"], matches)
    assert_array_equal(found["matching_scores0"] > 0, scores > 0)
    np.testing.assert_allclose(found["matching_scores0"], scores, atol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 5), (5, 1)])
def test_one_keypoint_has_no_second_best_so_there_is_no_ratio_test(sizes):
    rng = np.random.default_rng(3)
    a, b = (unit_rows(rng, size) for size in sizes)
    found = NearestNeighbor(0.1)({"descriptors0": a.T, "descriptors1": b.T})
    assert_array_equal(found["matches0"], plain(a, b)[0])
    assert (found["matches0"] >= 0).sum() == 1


def test_thresholds_of_zero_are_no_thresholds_as_in_hloc():
    a, b = views()
    found = NearestNeighbor(0, 0)({"descriptors0": a.T, "descriptors1": b.T})
    assert_array_equal(found["matches0"], plain(a, b)[0])


def test_a_batch_gives_results_with_a_batch():
    a, b = views()
    matcher = NearestNeighbor(0.9)
    batch = {"descriptors0": np.stack([a.T, b.T]), "descriptors1": np.stack([b.T, a.T])}
    found = matcher(batch)
    assert found["matches0"].shape == found["matching_scores0"].shape == (2, len(a))
    for row, (one, other) in enumerate(((a, b), (b, a))):
        alone = matcher({"descriptors0": one.T, "descriptors1": other.T})
        for name in alone:
            assert_array_equal(found[name][row], alone[name])
    with pytest.raises(ValueError, match=r"got \(2, 32, 120\) and \(32, 120\)"):
        matcher({**batch, "descriptors1": b.T})


def write_features(path, sets):
    with h5py.File(str(path), "w") as out:
        for name, rows in sets.items():
            out.create_group(name).create_dataset("descriptors", data=rows.T)
    return path


def test_files_are_read_and_written_as_hloc_does(tmp_path):
    a, b = views()
    features = write_features(tmp_path / "features.h5", {"db/1.jpg": a, "query/2.jpg": b})
    (tmp_path / "pairs.txt").write_text("db/1.jpg query/2.jpg\nquery/2.jpg db/1.jpg\n")
    assert match_features(features, tmp_path / "pairs.txt", tmp_path / "matches.h5") == 1
    with h5py.File(str(tmp_path / "matches.h5"), "r") as opened:
        group = opened["db-1.jpg/query-2.jpg"]
        matches, scores = plain(a, b)
        assert_array_equal(group["matches0"], matches)
        assert group["matches0"].dtype == np.int16
        assert_array_equal(group["matching_scores0"], scores.astype(np.float16))


def test_pairs_that_are_there_are_kept_and_cut_ones_are_written_again(tmp_path):
    a, b = views(20)
    sets = {"a": a, "b": b, "c": a[:7]}
    features = write_features(tmp_path / "features.h5", sets)
    out = tmp_path / "matches.h5"
    assert match_features(features, [("a", "b")], out) == 1
    with h5py.File(str(out), "a") as opened:
        opened.create_group(pair_name("b", "c")).create_dataset("matching_scores0", data=[0.0])
    assert match_features(features, [("b", "a"), ("b", "c")], out) == 1
    with h5py.File(str(out), "r") as opened:
        assert len(opened["b/c/matches0"]) == len(b)
    assert match_features(features, [("a", "b")], out, overwrite=True) == 1


def test_pairs_under_the_older_names_of_hloc_are_kept(tmp_path):
    a, b = views(20)
    features = write_features(tmp_path / "features.h5", {"db/1.jpg": a, "query/2.jpg": b})
    out = tmp_path / "matches.h5"
    with h5py.File(str(out), "w") as opened:
        opened["db-1.jpg_query-2.jpg/matches0"] = np.zeros(20, np.int16)
    assert match_features(features, [("query/2.jpg", "db/1.jpg")], out) == 0


def test_half_precision_features_and_a_new_folder(tmp_path):
    a, b = views(20)
    sets = {"a": np.float16(a), "b": np.float16(b)}
    features = write_features(tmp_path / "features.h5", sets)
    out = tmp_path / "new" / "matches.h5"
    assert match_features(features, [("a", "b")], out) == 1
    with h5py.File(str(out), "r") as opened:
        expected = plain(np.float32(sets["a"]), np.float32(sets["b"]))[0]
        assert_array_equal(opened["a/b/matches0"], expected)


KILLED = """
import os, signal, sys
from hiernorm.adapters.hloc import match_features
def kill(done, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)
match_features(sys.argv[1], [("a", "b"), ("a", "c"), ("b", "c")], sys.argv[2], progress=kill)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_process_leaves_whole_pairs_and_the_rest_is_done_later(tmp_path):
    a, b = views(20)
    features = write_features(tmp_path / "features.h5", {"a": a, "b": b, "c": a[:7]})
    out = tmp_path / "matches.h5"
    words = [sys.executable, "-c", KILLED, str(features), str(out)]
    assert subprocess.run(words, capture_output=True).returncode == -signal.SIGKILL
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    assert match_features(features, pairs, out) == 1
    whole = tmp_path / "whole.h5"
    match_features(features, pairs, whole)
    with h5py.File(str(out), "r") as found, h5py.File(str(whole), "r") as expected:
        for pair in pairs:
            name = f"{pair_name(*pair)}/matches0"
            assert_array_equal(found[name], expected[name])


def test_files_that_are_not_hdf5_are_named(tmp_path):
    a, b = views(20)
    features = write_features(tmp_path / "features.h5", {"a": a, "b": b})
    for file in (tmp_path / "matches.h5", tmp_path / "other.h5"):
        file.write_bytes(b"no file of hloc")
    with pytest.raises(DamagedError, match=r"matches\.h5 is no HDF5 file, or it is damaged"):
        match_features(features, [("a", "b")], tmp_path / "matches.h5")
    with pytest.raises(DamagedError, match=r"other\.h5 is no HDF5 file"):
        match_features(tmp_path / "other.h5", [("a", "b")], tmp_path / "new.h5")


def test_more_keypoints_than_int16_can_name_are_written_as_int32(tmp_path):
    rng = np.random.default_rng(0)
    many = unit_rows(rng, 33_000, 8)
    sets = {"few": many[-3:], "last": many[-2:], "many": many}
    features = write_features(tmp_path / "features.h5", sets)
    pairs = [("few", "many"), ("few", "last"), ("last", "many")]
    with pytest.warns(UserWarning, match=r"matches\.h5: .* matches0 is int32 there") as said:
        match_features(features, pairs, tmp_path / "matches.h5")
    assert len(said) == 1  # once, not for each pair
    with h5py.File(str(tmp_path / "matches.h5"), "r") as opened:
        assert opened["few/many/matches0"].dtype == np.int32
        assert opened["few/many/matches0"][:].tolist() == [32_997, 32_998, 32_999]
        assert opened["few/last/matches0"].dtype == np.int16


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of huge descriptors
def test_damage_inside_of_a_file_is_named(tmp_path):
    """Bytes of the headers; descriptors have no checksum."""
    a, b = views(20)
    features = write_features(tmp_path / "features.h5", {"a": a, "b": b})
    match_features(features, [("a", "b")], tmp_path / "matches.h5")
    for file in (features, tmp_path / "matches.h5"):
        whole = file.read_bytes()
        said = []
        for place in range(0, min(len(whole), 3000), 7):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            try:
                match_features(features, [("a", "b")], tmp_path / "matches.h5", overwrite=True)
            except Exception as error:  # of any kind, but it names the file
                said.append(str(error))
        assert len(said) > 10
        assert not [text for text in said if file.name not in text]
        file.write_bytes(whole)


def test_pairs_that_are_not_text_are_named(tmp_path):
    features = write_features(tmp_path / "features.h5", {"a": views(5)[0]})
    (tmp_path / "pairs.txt").write_bytes("a caf\u00e9.jpg\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"pairs\.txt is not UTF-8 text \(byte 5\)"):
        match_features(features, tmp_path / "pairs.txt", tmp_path / "matches.h5")


def test_missing_files_and_photos_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no features at"):
        match_features(tmp_path / "none.h5", [], tmp_path / "matches.h5")
    features = write_features(tmp_path / "features.h5", {"a": views(5)[0]})
    with pytest.raises(KeyError, match="no descriptors of 'b'"):
        match_features(features, [("a", "b")], tmp_path / "matches.h5")


def test_a_full_disk_is_an_error_before_hdf5_writes(tmp_path, monkeypatch):
    a, b = views(20)
    features = write_features(tmp_path / "features.h5", {"a": a, "b": b, "c": a})
    out = tmp_path / "matches.h5"
    usage = shutil.disk_usage(tmp_path)

    def fill(done, total):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))

    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    with pytest.raises(OSError, match=r"no space left for .*matches\.h5: HDF5 may need"):
        match_features(features, pairs, out, progress=fill)
    with pytest.raises(OSError, match="1,000 are free"):
        match_features(features, pairs, tmp_path / "new.h5")
    monkeypatch.undo()
    assert match_features(features, pairs, out) == 2


def test_descriptors_that_cannot_be_matched_are_named(tmp_path):
    file = tmp_path / "features.h5"
    bad = {"flat": np.zeros(3), "cube": np.zeros((3, 4, 5)), "nan": np.full((4, 5), np.nan)}
    with h5py.File(str(file), "w") as opened:
        opened["good/descriptors"] = np.eye(4, dtype=np.float32)
        opened["short/descriptors"] = np.eye(3, dtype=np.float32)
        opened["text/descriptors"] = np.array([[b"x"]])
        for name, rows in bad.items():
            opened[f"{name}/descriptors"] = rows
    for name in (*bad, "text"):
        with pytest.raises(
            (ValueError, TypeError), match=rf"features\.h5: descriptors of '{name}':"
        ):
            match_features(file, [("good", name)], tmp_path / "matches.h5")
    with pytest.raises(ValueError, match=r"of 'good' have 4 dimensions, those of 'short' 3"):
        match_features(file, [("good", "short")], tmp_path / "matches.h5")


def test_no_descriptors_no_matches():
    found = NearestNeighbor()({"descriptors0": np.zeros((8, 0)), "descriptors1": np.eye(8)})
    assert found["matches0"].shape == (0,)

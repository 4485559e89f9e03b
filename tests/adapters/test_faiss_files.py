"""Files of flat indexes: FAISS reads ours, we read FAISS's, and damage has its error."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import hiernorm.adapters.faiss_shaped as ours
from support import hn_rows

X = np.random.default_rng(0).integers(-9, 10, (60, 8)).astype(np.float32)
IDS = np.random.default_rng(1).permutation(10_000)[:60]
MAKERS = {
    "IxFI": lambda f: f.IndexFlatIP(8),
    "IxF2": lambda f: f.IndexFlatL2(8),
    "IxMp": lambda f: f.IndexIDMap(f.IndexFlatIP(8)),
    "IxM2": lambda f: f.IndexIDMap2(f.IndexFlatL2(8)),
}


def made(faiss, letters):
    index = MAKERS[letters](faiss)
    index.add(X) if letters.startswith("IxF") else index.add_with_ids(X, IDS)
    return index


def assert_same_answers(mine, other):
    queries = X[:20] / 4 + np.float32(0.125)
    for a, b in zip(mine.search(queries, 1), other.search(queries, 1), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("letters", MAKERS)
def test_faiss_and_we_write_the_same_file_and_read_it(letters, tmp_path):
    theirs = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    theirs.write_index(made(theirs, letters), str(tmp_path / "theirs"))
    ours.write_index(made(ours, letters), tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert (tmp_path / "ours").read_bytes()[:4] == letters.encode()
    index = ours.read_index(str(tmp_path / "theirs"))
    assert type(index) is type(made(ours, letters))
    assert_same_answers(index, theirs.read_index(str(tmp_path / "ours")))


@pytest.mark.parametrize("metric", [0, 1])
def test_faiss_reads_an_index_hn_as_one_with_ids(metric, tmp_path):
    theirs = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    index = ours.IndexHN(8, metric)
    index.add_with_ids(X, IDS)
    ours.write_index(index, tmp_path / "index")
    read = theirs.read_index(str(tmp_path / "index"))
    assert isinstance(read, theirs.IndexIDMap2)
    np.testing.assert_array_equal(read.reconstruct_batch(IDS), X)


def test_an_index_hn_keeps_its_parameters_and_the_ids_it_gave_out(tmp_path):
    x = hn_rows(50, 16, 4)
    index = ours.IndexHN(16, major=4, alpha=1 / 8)
    index.add(x)
    index.remove_ids([49])
    ours.write_index(index, tmp_path / "index")
    twin = ours.read_index(tmp_path / "index")
    assert (twin._index.major, twin._index.alpha) == (4, 1 / 8)
    twin.add(x[:1])
    assert twin.search(x[:1], 2)[1].tolist() == [[0, 50]]


def test_files_of_earlier_versions_are_read(tmp_path):
    settings = {
        "format": "hiernorm IndexHN 1",
        "d": 8,
        "metric": 1,
        "major": None,
        "alpha": None,
        "next_id": 20_000,
    }
    old = tmp_path / "old.npz"
    np.savez(old, settings=json.dumps(settings), ids=IDS, rows=X)
    index = ours.read_index(old)
    np.testing.assert_array_equal(index.reconstruct_batch(IDS), X)
    index.add(X[:1])
    assert index.reconstruct(20_000).tolist() == X[0].tolist()
    np.savez(tmp_path / "other.npz", vectors=X)
    np.savez(tmp_path / "objects.npz", settings=np.array({"a": 1}, object), ids=IDS, rows=X)
    (tmp_path / "half.npz").write_bytes(old.read_bytes()[:1000])
    for name in ("other", "objects", "half"):
        with pytest.raises(ValueError, match="not a whole one of format") as error:
            ours.read_index(tmp_path / f"{name}.npz")
        assert "pickle" not in str(error.getrepr(chain=True).reprcrash)
        assert error.value.__suppress_context__


def test_any_other_file_has_its_error_which_names_it(tmp_path):
    file = tmp_path / "index"
    np.save(tmp_path / "array.npy", np.array([{}], object))
    good = ours.serialize_index(made(ours, "IxM2")).tobytes()
    hn = ours.IndexHN(8)
    hn.add(X)
    noted = ours.serialize_index(hn).tobytes()
    bad = {
        "empty": b"",
        "text": b"id,vector\n" * 50,
        "pickle": (tmp_path / "array.npy").read_bytes(),
        "another index": b"IwFl" + good[4:],
        "another metric": good[:33] + b"\x07" + good[34:],
        "too many entries": good[:8] + b"\xff" * 7 + b"\x7f" + good[16:],
        "bytes behind the end": good + b"\0" * 30,
        "another byte": noted[:100] + bytes([noted[100] ^ 1]) + noted[101:],
        "not a number": good[:82] + np.float32([np.nan]).tobytes() + good[86:],
    }
    for length in (3, 20, 60, 500, len(good) - 1):
        bad[f"the first {length} bytes"] = good[:length]
    for what, content in bad.items():
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is no flat index of FAISS") as error:
            ours.read_index(file)
        assert isinstance(error.value, RuntimeError), what
        assert str(file) in str(error.value)
        assert "pickle" not in str(error.value)
        assert error.value.__suppress_context__
    file.write_bytes(b"IwFl" + good[4:])
    with pytest.raises(ValueError, match="starts with 'IwFl'; read_index reads IxFI and IxF2"):
        ours.read_index(file)
    with pytest.raises(FileNotFoundError, match="no such file"):
        ours.read_index(tmp_path / "none")


@pytest.mark.parametrize("kind", ["IxFI", "IxM2", "IndexHN"])
def test_no_byte_behind_an_index_is_read_from_a_stream(kind):
    index = ours.IndexHN(8) if kind == "IndexHN" else made(ours, kind)
    if kind == "IndexHN":
        index.add(X)
    stream = io.BytesIO(ours.serialize_index(index).tobytes() + b"what follows")
    assert_same_answers(ours.read_index(ours.PyCallbackIOReader(stream.read)), index)
    assert stream.read() == b"what follows"


def test_an_index_goes_through_the_files_of_faiss_by_name(tmp_path):
    index = made(ours, "IxM2")
    for writer in (
        ours.FileIOWriter(tmp_path / "a"),
        ours.BufferedIOWriter(ours.FileIOWriter(tmp_path / "a"), 100),
    ):
        ours.write_index(index, writer)
        del writer
        reader = ours.BufferedIOReader(ours.FileIOReader(tmp_path / "a"), 100)
        assert_same_answers(ours.read_index(reader), index)
        assert_same_answers(ours.read_index(tmp_path / "a"), index)


def test_an_index_goes_through_streams_and_bytes():
    index = made(ours, "IxM2")
    stream = io.BytesIO()
    ours.write_index(index, stream)
    assert stream.getvalue() == ours.serialize_index(index).tobytes()
    stream.seek(0)
    assert_same_answers(ours.read_index(stream), index)
    pieces: list[bytes] = []
    ours.write_index(index, ours.PyCallbackIOWriter(pieces.append))
    data = io.BytesIO(b"".join(pieces))
    assert_same_answers(ours.read_index(ours.PyCallbackIOReader(data.read, 100)), index)
    assert_same_answers(ours.deserialize_index(stream.getvalue()), index)
    with pytest.raises(TypeError, match="data must be bytes or uint8"):
        ours.deserialize_index(np.zeros(9))
    with pytest.raises(TypeError, match="index must be one of"):
        ours.serialize_index("index")

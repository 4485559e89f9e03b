"""Vectors from files and iterators: in pieces, with their ids, all of them or none."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hiernorm
from database_support import D, assert_equals_model, contents, create, small_segments, vectors
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.storage.tensors import TensorFile, TensorWriter
from support import raises_text

ROWS = vectors(1, 300)
IDS = np.arange(300) * 3 + 100


def _write_npy(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    np.save(path, rows)


def _write_npz(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    np.savez(path, vectors=rows, **({} if ids is None else {"ids": ids}))


def _write_compressed(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    np.savez_compressed(path, anything=rows, **({} if ids is None else {"ids": ids}))


def _write_fortran(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    np.savez(path, vectors=np.asfortranarray(rows), **({} if ids is None else {"ids": ids}))


def _write_safetensors(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    numpy.save_file({"vectors": rows, **({} if ids is None else {"ids": ids})}, path)


def _write_parquet(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    import pyarrow.parquet

    columns = {"vectors": arrow.FixedSizeListArray.from_arrays(rows.ravel(), rows.shape[1])}
    if ids is not None:
        columns["ids"] = arrow.array(ids)
    pyarrow.parquet.write_table(arrow.table(columns), path, row_group_size=70)


def _write_parquet_lists(path: Path, ids: Int64Array | None, rows: Float32Array) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    import pyarrow.parquet

    columns = {"embedding": arrow.array(rows.tolist(), arrow.list_(arrow.float32()))}
    if ids is not None:
        columns["ids"] = arrow.array(ids)
    pyarrow.parquet.write_table(arrow.table(columns), path)


WRITERS: dict[str, tuple[str, Callable[..., None], bool]] = {
    "npy": ("x.npy", _write_npy, False),
    "npz": ("x.npz", _write_npz, True),
    "npz-compressed": ("x.npz", _write_compressed, True),
    "npz-fortran": ("x.npz", _write_fortran, True),
    "safetensors": ("x.safetensors", _write_safetensors, True),
    "parquet": ("x.parquet", _write_parquet, True),
    "parquet-lists": ("x.parquet", _write_parquet_lists, True),
}


@pytest.fixture(params=["memory", "spooled"])
def _pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pieces of a few rows, and segments of fewer rows than there are, through a file or not."""
    memory = 0 if request.param == "spooled" else 1 << 26
    with (
        small_segments(entries=128),
        mock.patch("hiernorm.storage.vector_files.PIECE_BYTES", 50 * D * 4),
        mock.patch("hiernorm.storage.spill_buffer.MEMORY_BYTES", memory),
    ):
        yield


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("name", WRITERS)
def test_files_bring_vectors_and_ids(tmp_path: Path, name: str) -> None:
    file, write, with_ids = WRITERS[name]
    write(tmp_path / file, IDS if with_ids else None, ROWS)
    db = create(tmp_path / "db")
    seen: list[tuple[int, int | None]] = []
    assert db.add(tmp_path / file, progress=lambda done, total: seen.append((done, total))) == 300
    ids = IDS if with_ids else np.arange(300)
    assert_equals_model(db, dict(zip(ids.tolist(), ROWS, strict=True)))
    assert seen[-1][0] == 300
    assert seen[-1][1] in (300, None)
    assert db.check().ok
    assert db.info()["segments"] == 3
    assert not list((tmp_path / "db").glob("*.spool"))


@pytest.mark.usefixtures("_pieces")
def test_iterators_bring_vectors_or_pairs(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    db.add(ROWS[first : first + 40] for first in range(0, 120, 40))
    db.add((IDS[first : first + 7] + 5000, ROWS[first : first + 7]) for first in range(0, 70, 7))
    db.add((ROWS[i : i + 10] for i in range(0, 20, 10)), ids=range(9000, 9020))
    model = {
        **{i: ROWS[i] for i in range(120)},
        **dict(zip((IDS[:70] + 5000).tolist(), ROWS[:70], strict=True)),
        **{9000 + i: ROWS[i] for i in range(20)},
    }
    assert_equals_model(db, model)
    db.upsert((IDS[first : first + 7] + 5000, ROWS[-7:]) for first in range(0, 70, 7))
    model |= {int(IDS[i] + 5000): ROWS[-7:][i % 7] for i in range(70)}
    assert_equals_model(db, model)


def _bad_at_the_end() -> Iterator[Float32Array]:
    yield ROWS[:200]
    yield np.full((3, D), np.nan, np.float32)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize(
    ("source", "text"),
    [
        (_bad_at_the_end, "vectors row 0, dimension 0 is NaN"),
        (lambda: iter([ROWS[:200], ROWS[:2, :3]]), "vectors have 3 dimensions"),
        (lambda: iter([(IDS[:150], ROWS[:150]), (IDS[:2], ROWS[:2])]), "id 100 is"),
        (lambda: iter([(IDS[:30], ROWS[:30]), (IDS[:2], ROWS[:2])]), "id 100 is given twice"),
        (lambda: iter([(IDS[:30], ROWS[:29])]), "29 vectors need 29 ids, got 30"),
    ],
)
@pytest.mark.parametrize("change", ["add", "upsert"])
def test_a_source_that_fails_at_its_end_adds_nothing(
    tmp_path: Path, source: Callable[[], Any], text: str, change: str
) -> None:
    db = create(tmp_path / "db")
    db.add(ROWS[:10], range(10**6, 10**6 + 10))
    before = contents(tmp_path / "db")
    with pytest.raises(ValueError, match=text):
        getattr(db, change)(source())
    assert contents(tmp_path / "db") == before
    assert_equals_model(db, {10**6 + i: ROWS[i] for i in range(10)})


def test_ids_must_be_as_many_as_the_vectors_of_a_source(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    with raises_text(ValueError, "10 vectors need 10 ids, got 12"):
        db.add(iter([ROWS[:10]]), ids=range(12))
    with pytest.raises(ValueError, match="10 vectors need 10 ids, got 8"):
        db.add(iter([ROWS[:10]]), ids=range(8))
    assert len(db) == 0


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        db.add(tmp_path / "nowhere.npy")
    with pytest.raises(ValueError, match=r"x\.csv: vectors are read from \.npy, \.npz"):
        db.add(tmp_path / "x.csv")
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    with pytest.raises(ValueError, match="expected a matrix called 'vectors' or a single one"):
        db.add(tmp_path / "two.npz")
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"vectors must have shape \(n, d\), got \(2, 2, 2\)"):
        db.add(tmp_path / "cube.npy")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        db.add(tmp_path / "objects.npy")
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 100)
    # No damage of the database: nobody should restore it.
    with pytest.raises(ValueError, match=r"broken\.safetensors announces a header"):
        db.add(tmp_path / "broken.safetensors")
    assert len(db) == 0


def test_parquet_with_gaps_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    import pyarrow.parquet

    db = create(tmp_path / "db")
    for column in ([[1.0] * D, None], [[1.0] * D, [1.0] * (D - 2), [1.0] * (D + 2)]):
        table = arrow.table({"vectors": arrow.array(column, arrow.list_(arrow.float32()))})
        pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(ValueError, match=r"missing|different lengths"):
            db.add(tmp_path / "x.parquet")
    assert len(db) == 0


def test_other_tools_read_our_files_and_we_read_theirs(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    db = create(tmp_path / "db")
    db.add(ROWS, IDS)
    db.delete(IDS[:1])
    for file in (tmp_path / "db").glob("*.safetensors"):
        theirs = numpy.load_file(file)
        ours = TensorFile(file)
        assert theirs.keys() == ours.header.tensors.keys()
        for name, array in theirs.items():
            np.testing.assert_array_equal(array, ours.array(name))
    segment = numpy.load_file(next((tmp_path / "db").glob("segment-*")))
    by_id = dict(zip(segment["ids"].tolist(), segment["rows"], strict=True))
    np.testing.assert_array_equal(by_id[int(IDS[7])], ROWS[7])


def test_a_file_is_written_as_announced_or_not_at_all(tmp_path: Path) -> None:
    writer = TensorWriter(tmp_path / "a", {"x": ("F32", (4,))}, {})
    writer.write("x", np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="less than"):
        writer.finish()
    with pytest.raises(ValueError, match="more than"):
        writer.write("x", np.zeros(2, np.float32))
    writer.close()


def test_memory_of_a_large_source_does_not_grow_with_it(tmp_path: Path) -> None:
    """Rows that were taken in are not kept: pieces are dropped once their segment is written."""
    import weakref

    alive: list[Any] = []

    def pieces() -> Iterator[Float32Array]:
        for seed in range(12):
            piece = vectors(seed, 64)
            alive.append(weakref.ref(piece))
            yield piece
            del piece

    most = 0

    def watch(done: int, total: int | None) -> None:
        nonlocal most
        most = max(most, sum(reference() is not None for reference in alive))

    with small_segments(entries=128):
        db = hiernorm.Database.create(tmp_path / "db", D, major=2, alpha=0.125)
        assert db.add(pieces(), progress=watch) == 12 * 64
    assert most <= 4


def _npz_of_zeros(path: Path, shape: tuple[int, ...], **more: Any) -> None:
    np.savez_compressed(path, vectors=np.zeros(shape, np.float32), **more)


def _parquet_of_zeros(path: Path, shape: tuple[int, int]) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    import pyarrow.parquet

    rows = np.zeros(shape[0] * shape[1], np.float32)
    columns = {"vectors": arrow.FixedSizeListArray.from_arrays(rows, shape[1])}
    pyarrow.parquet.write_table(arrow.table(columns), path)


@pytest.mark.parametrize(
    ("write", "suffix"),
    [
        (lambda path: _npz_of_zeros(path, (2, 200_000)), ".npz"),
        (lambda path: _npz_of_zeros(path, (100_000, D)), ".npz"),
        (lambda path: _npz_of_zeros(path, (3, D), ids=np.zeros(200_000, np.int64)), ".npz"),
        (lambda path: _parquet_of_zeros(path, (2, 200_000)), ".parquet"),
        (lambda path: _parquet_of_zeros(path, (200_000, D)), ".parquet"),
    ],
)
def test_a_small_file_may_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None], suffix: str
) -> None:
    monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", "300000")
    db = create(tmp_path / "db")
    bomb = tmp_path / f"bomb{suffix}"
    write(bomb)
    with pytest.raises(ValueError, match=r"bomb.* would grow to .* set HIERNORM_EXPANSION_LIMIT"):
        db.add(bomb)
    index = hiernorm.Index(D)
    with pytest.raises(ValueError, match=r"bomb.* would grow to "):
        index.add(bomb)
    assert len(db) == len(index) == 0


@pytest.mark.parametrize("dictionary", [True, False])
def test_texts_of_a_payload_may_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dictionary: bool
) -> None:
    monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", "3000000")
    db, index = create(tmp_path / "db"), hiernorm.Index(D)
    arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    import pyarrow.parquet

    rows, bomb = vectors(1, 500), tmp_path / "bomb.parquet"
    lists = arrow.FixedSizeListArray.from_arrays(rows.ravel(), D)
    columns = {"vectors": lists, "text": ["x" * 10_000] * len(rows)}
    pyarrow.parquet.write_table(
        arrow.table(columns), bomb, use_dictionary=dictionary, compression="zstd"
    )
    texts = tmp_path / "bomb-texts.parquet"
    pyarrow.parquet.write_table(arrow.table(columns).select(["text"]), texts)
    for searchable in (db, index):
        with pytest.raises(ValueError, match=r"bomb.* would grow to .* HIERNORM_EXPANSION_LIMIT"):
            searchable.add(bomb, payload=True)
        with pytest.raises(ValueError, match=r"bomb-texts.* would grow to "):
            searchable.add(rows, payload=texts)
        assert len(searchable) == 0
    monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", "10000000")
    db.add(bomb, payload=True)
    assert db.payload([3])["text"].to_pylist() == ["x" * 10_000]


def test_the_limit_of_growth_can_be_raised(tmp_path: Path, monkeypatch: Any) -> None:
    _npz_of_zeros(tmp_path / "zeros.npz", (10_000, D))
    db = create(tmp_path / "db", "plain")
    for limit in ("none", "0", "-1"):
        monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", limit)
        with pytest.raises(ValueError, match="HIERNORM_EXPANSION_LIMIT must be a positive number"):
            db.add(tmp_path / "zeros.npz")
    monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", "1000")
    with pytest.raises(ValueError, match="would grow"):
        db.add(tmp_path / "zeros.npz")
    monkeypatch.setenv("HIERNORM_EXPANSION_LIMIT", "1000000")
    assert db.add(tmp_path / "zeros.npz") == 10_000


@pytest.mark.skipif(os.name == "nt", reason="FIFOs are of POSIX systems")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
def test_a_fifo_is_no_source(tmp_path: Path, suffix: str) -> None:
    db = create(tmp_path / "db")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    with pytest.raises(
        (OSError, ValueError),
        match=r"pipe.* is .*a regular file",
    ):
        db.add(tmp_path / f"pipe{suffix}")
    if suffix == ".parquet":
        with pytest.raises(OSError, match="is a FIFO, expected a regular file"):
            db.add(vectors(1, 3), payload=tmp_path / f"pipe{suffix}")


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    file = tmp_path / "rows.parquet"
    _write_parquet(file, None, ROWS)
    whole = file.read_bytes()
    for data in (b"", whole[:100], whole[:-20] + b"x" * 20, b"PAR1" + bytes(1000)):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"rows\.parquet"):
            db.add(file)
    assert len(db) == 0


def test_a_npz_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    db = create(tmp_path / "db")
    file = tmp_path / "rows.npz"
    np.savez(file, vectors=np.array([[{}, 1]], object))
    with pytest.raises(ValueError, match=r"rows\.npz .*arrays of Python objects are not read"):
        db.add(file)
    whole = io.BytesIO()
    np.save(whole, ROWS)
    for data in (b"no array", whole.getvalue()[:40], whole.getvalue()[:-7]):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("vectors.npy", data)
        with pytest.raises(ValueError, match=r"rows\.npz") as raised:
            db.add(file)
        assert "pickle" not in str(raised.value)
    assert len(db) == 0


@pytest.mark.skipif(os.name == "nt", reason="FIFOs are of POSIX systems")
def test_the_error_about_a_fifo_says_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.npy")
    with pytest.raises(OSError, match=r"rows\.npy is a FIFO, expected a regular file") as raised:
        create(tmp_path / "db").add(tmp_path / "rows.npy")
    assert "Errno" not in str(raised.value)

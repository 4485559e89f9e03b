"""Public shapes: readers of public formats, stand-ins, attention, roofs, checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("hnswlib", reason="needs hiernorm[bench]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")
pytest.importorskip("h5py", reason="needs hiernorm[colmap]")
pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")

import h5py
import pyarrow
from click.testing import CliRunner
from pyarrow import parquet

from experiments.checks.outcome import read_outcome
from experiments.harness.records import read_record
from experiments.public.__main__ import main
from experiments.public.formats import (
    read_hdf5,
    read_parquet,
    read_set,
    read_vecs,
    read_vectors,
)
from experiments.public.shapes import SHAPES, find_shape
from experiments.public.tables import render_public
from hiernorm.reference import Float32Array


@pytest.fixture
def rows() -> Float32Array:
    return np.random.default_rng(0).standard_normal((50, 8), dtype=np.float32)


def write_hdf5(file: Path, rows: Float32Array, **attributes: object) -> None:
    """Write a file as ann-benchmarks and VIBE do."""
    with h5py.File(file, "w") as content:
        content.attrs.update(attributes)
        content["train"], content["test"] = rows[:40], rows[40:]
        distances = np.square(rows[40:, None] - rows[None, :40]).sum(axis=2)
        content["neighbors"] = np.argsort(distances, axis=1)[:, :5].astype(np.int32)


def write_vecs(file: Path, rows: np.ndarray) -> None:
    """Write a file as TEXMEX does: every vector after its dimension."""
    with file.open("wb") as stream:
        for row in rows:
            stream.write(np.int32(len(row)).tobytes() + row.tobytes())


@pytest.mark.parametrize(
    ("distance", "metric"),
    [
        ("euclidean", "l2"),
        ("angular", "cosine"),
        (b"cosine", "cosine"),
        ("normalized", "ip"),
        ("ip", "ip"),
    ],
)
def test_hdf5_of_ann_benchmarks_and_vibe_is_read(tmp_path, rows, distance, metric):
    write_hdf5(tmp_path / "set.hdf5", rows, distance=distance, point_type="float", dimension=8)
    found = read_hdf5(tmp_path / "set.hdf5")
    np.testing.assert_array_equal(found.entries, rows[:40])
    np.testing.assert_array_equal(found.queries, rows[40:])
    assert found.metric == metric
    assert found.neighbors.shape == (10, 5)
    assert found.neighbors.dtype == np.int64


def test_the_neighbours_of_a_file_are_those_that_we_find(tmp_path, rows):
    import hiernorm

    write_hdf5(tmp_path / "set.hdf5", rows, distance="euclidean")
    found = read_set(tmp_path / "set.hdf5")
    index = hiernorm.Index(8, metric=found.metric)
    index.add(found.entries)
    np.testing.assert_array_equal(index.search(found.queries, 5).ids, found.neighbors)


def test_hdf5_that_is_none_of_theirs_is_refused(tmp_path, rows):
    write_hdf5(tmp_path / "set.hdf5", rows, distance="jaccard")
    with pytest.raises(ValueError, match="has the distance 'jaccard'; known are euclidean"):
        read_hdf5(tmp_path / "set.hdf5")
    write_hdf5(tmp_path / "bits.hdf5", rows, distance="euclidean", point_type="binary")
    with pytest.raises(ValueError, match="binary vectors"):
        read_hdf5(tmp_path / "bits.hdf5")
    with h5py.File(tmp_path / "none.hdf5", "w") as content:
        content["train"] = rows
    with pytest.raises(ValueError, match="no dataset 'test': it has train"):
        read_hdf5(tmp_path / "none.hdf5")


@pytest.mark.parametrize(("suffix", "kind"), [(".fvecs", "f4"), (".bvecs", "u1"), (".ivecs", "i4")])
def test_vecs_are_read_in_their_type(tmp_path, rows, suffix, kind):
    numbers = (100 * np.abs(rows)).astype(kind)
    file = tmp_path / f"set{suffix}"
    write_vecs(file, numbers)
    found = read_vecs(file)
    assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(found, numbers)
    np.testing.assert_array_equal(read_vectors(file), numbers.astype(np.float32))


def test_vecs_that_are_cut_or_mixed_are_refused(tmp_path, rows):
    file = tmp_path / "set.fvecs"
    write_vecs(file, rows)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="no whole number of vectors of 8 dimensions"):
        read_vecs(file)
    file.write_bytes(whole[:36] + b"\x07" + whole[37:])
    with pytest.raises(ValueError, match="other dimensions than 8"):
        read_vecs(file)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        read_vecs(file)


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_parquet_of_lists_is_read(tmp_path, rows, kind):
    file = tmp_path / "set.parquet"
    lists = pyarrow.list_(pyarrow.float32(), 8 if kind == "fixed" else -1)
    column = pyarrow.array(rows.tolist(), lists)
    parquet.write_table(
        pyarrow.table({"id": list(range(50)), "emb": column}), file, row_group_size=20
    )
    np.testing.assert_array_equal(read_parquet(file), rows)
    with pytest.raises(ValueError, match="no column vectors: it has id, emb"):
        read_parquet(file, "vectors")
    ragged = pyarrow.array([[1.0], [1.0, 2.0]])
    parquet.write_table(pyarrow.table({"emb": ragged}), file)
    with pytest.raises(ValueError, match="differ in length"):
        read_parquet(file)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_stand_in_has_the_form_of_its_set(shape):
    drawn = shape.draw(3_000, 20, seed=1)
    assert drawn.entries.shape == (3_000, shape.dim)
    assert drawn.queries.shape == (20, shape.dim)
    assert drawn.metric == shape.metric
    centred = drawn.entries - drawn.entries.mean(axis=0)
    energy = np.sort(np.linalg.eigvalsh(np.cov(centred.T.astype(np.float64))))[::-1]
    assert energy[: shape.dim // 8].sum() > 2 * energy.sum() / 8  # concentrated, as real ones are
    if shape.integers:
        np.testing.assert_array_equal(drawn.entries, np.rint(drawn.entries))
        assert drawn.entries.min() == 0
        assert drawn.entries.max() <= 255
    if shape.unit:
        np.testing.assert_allclose(np.linalg.norm(drawn.entries, axis=1), 1, atol=1e-6)


def test_sets_and_stand_ins_are_measured_and_told_apart(tmp_path):
    shape = find_shape("sift-128-euclidean")
    drawn = shape.draw(400, 30)
    with h5py.File(tmp_path / f"{shape.name}.hdf5", "w") as content:
        content.attrs["distance"] = "euclidean"
        content["train"], content["test"] = drawn.entries, drawn.queries
    arguments = ["--smoke", "--out", tmp_path, "--only", shape.name]
    for extra, origin in (
        (["--sets", tmp_path], "the set"),
        ([], "stand-in: drawn, assumed spectrum"),
    ):
        done = CliRunner().invoke(main, list(map(str, [*arguments, *extra])))
        assert done.exit_code == 0, done.output
        (row,) = read_record(tmp_path / "public.json").result["sets"]
        assert row["origin"] == origin
        table = render_public(tmp_path / "public.json")
        assert len(table.rows) == 2 * len(shape.counts)
        assert all(len(cells) == len(table.head) for cells in table.rows)


def test_unknown_shapes_are_refused():
    assert "no shape 'sift'" in CliRunner().invoke(main, ["--only", "sift"]).output


def test_outcomes_of_checks_are_counted():
    found = read_outcome("kernels: scalar\nok a\n40 passed, 0 failed\n40 passed, 2 failed\n")
    assert (found.passed, found.failed) == (80, 2)
    found = read_outcome("==== 12 passed, 3 skipped, 1 error in 8.1s ====")
    assert (found.passed, found.failed, found.skipped) == (12, 1, 3)
    assert (
        read_outcome("#812 NEW\n#5000\tDONE cov: 3\nDone 5000 runs in 60 second(s)").inputs == 5000
    )
    missing = "scripts/emulate.sh needs qemu, and it was not found; Debian: sudo apt install qemu"
    assert read_outcome(missing).missing == missing

"""Files that are not what was written: found when opened, found by verify, or harmless."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiernorm
from database_support import (
    MAJOR,
    QUERIES,
    Model,
    assert_equals_model,
    create,
    right_hits,
    small_segments,
    vectors,
)
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.manifest import FileRecord, read_manifest
from hiernorm.storage.tensors import TensorFile, TensorWriter
from support import assert_same_hits

pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be changed there")


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_segments(entries=2000, cells=True):
        yield


def _prepared(path: Path, kind: str = "hn") -> Model:
    """A segment with codes and cells, some of whose entries are deleted."""
    rows = vectors(1, 200)
    db = create(path, kind)
    db.add(rows, range(200))
    db.delete(range(0, 200, 9))
    segment = next(path.glob("segment-*"))
    assert "cones_16" in TensorFile(segment).header.tensors
    assert db.info()["segments"] == 1
    return {i: rows[i] for i in range(200) if i % 9}


def _only(model: Model, where: range | None) -> Model:
    return model if where is None else {i: row for i, row in model.items() if i in where}


def _check_damaged(path: Path, model: Model) -> str:
    """Where the damage was found; fails if an answer is wrong, or nobody noticed."""
    try:
        db = hiernorm.Database.open(path)
    except hiernorm.DatabaseError:
        return "open"
    for where in (None, range(0, 200, 2)):
        try:
            hits = db.search(QUERIES, 3, where=where)
            assert_same_hits(hits, right_hits(_only(model, where), 3))
            some = list(model)[:5]
            np.testing.assert_array_equal(db.reconstruct(some), [model[i] for i in some])
        except hiernorm.DatabaseError:
            pass
    if not db.check().ok:
        return "verify"
    assert_equals_model(db, model)
    return "harmless"


def _flip_bytes(path: Path, file: Path, offsets: list[int], model: Model) -> dict[str, int]:
    found = {"open": 0, "verify": 0, "harmless": 0}
    rng = np.random.default_rng(0)
    with file.open("r+b", buffering=0) as handle:
        for offset in offsets:
            handle.seek(offset)
            byte = handle.read(1)
            handle.seek(offset)
            handle.write(bytes([byte[0] ^ int(rng.integers(1, 256))]))
            found[_check_damaged(path, model)] += 1
            handle.seek(offset)
            handle.write(byte)
    assert _check_damaged(path, model) == "harmless"
    return found


def _regions(file: Path) -> dict[str, tuple[int, int]]:
    header = TensorFile(file).header
    tensors = {name: (tensor.begin, tensor.end) for name, tensor in header.tensors.items()}
    return {"header": (0, min(begin for begin, _ in tensors.values())), **tensors}


@pytest.mark.parametrize("kind", ["hn", "plain"])
def test_no_changed_byte_goes_unnoticed(tmp_path: Path, kind: str) -> None:
    model = _prepared(tmp_path / "db", kind)
    rng = np.random.default_rng(1)
    for file in (tmp_path / "db").glob("*.safetensors"):
        for name, (begin, end) in _regions(file).items():
            offsets = np.unique(rng.integers(begin, end, 12)).tolist() if end > begin else []
            found = _flip_bytes(tmp_path / "db", file, offsets, model)
            assert found["harmless"] == 0, name
            if name in ("header", "live"):
                assert found["verify"] == 0, name  # these are noticed when the database is opened


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["hn", "plain"])
def test_no_changed_byte_goes_unnoticed_among_thousands(tmp_path: Path, kind: str) -> None:
    model = _prepared(tmp_path / "db", kind)
    for file in (tmp_path / "db").glob("*.safetensors"):
        offsets = list(range(0, file.stat().st_size, 3))
        assert _flip_bytes(tmp_path / "db", file, offsets, model)["harmless"] == 0


def test_no_changed_byte_of_the_manifest_is_believed(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    manifest = tmp_path / "db" / "manifest.json"
    offsets = list(range(0, manifest.stat().st_size, 2))
    found = _flip_bytes(tmp_path / "db", manifest, offsets, model)
    assert found["open"] == len(offsets)


def test_every_truncation_is_noticed_when_opened(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    for file in sorted((tmp_path / "db").glob("*.safetensors")):
        whole = file.read_bytes()
        lengths = {0, 1, 7, 8, 9, len(whole) - 1, *range(0, len(whole), max(1, len(whole) // 60))}
        for length in lengths:
            file.write_bytes(whole[:length])
            assert _check_damaged(tmp_path / "db", model) == "open"
        file.write_bytes(whole + b"\0")
        assert _check_damaged(tmp_path / "db", model) == "open"
        file.write_bytes(whole)
    for file in sorted((tmp_path / "db").glob("*.safetensors")):
        whole = file.read_bytes()
        file.unlink()
        with pytest.raises(DamagedError, match="is missing: restore the database from a snapshot"):
            hiernorm.Database.open(tmp_path / "db")
        file.write_bytes(whole)


def _forge(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write the segment anew with other contents; checksums, digests and manifest agree."""
    manifest = read_manifest(path)
    record = manifest.segments[0]
    file = TensorFile(path / record.data.file)
    arrays = {
        name: (tensor.dtype, np.array(file.array(name)))
        for name, tensor in file.header.tensors.items()
        if not name.startswith("padding.") and name != "checksums"
    }
    description = json.loads(file.header.metadata["hiernorm"])
    values = {name: array for name, (_, array) in arrays.items()}
    change(values, description)
    forged = path / "segment-00000099-0001.safetensors"
    tensors = {name: (arrays[name][0], values[name].shape) for name in values}
    metadata = {"hiernorm": json.dumps(description)}
    writer = TensorWriter(forged, tensors, metadata, checksums=True)
    for name, value in values.items():
        writer.write(name, value)
    written = writer.finish()
    data = FileRecord(forged.name, written.size, written.header_digest)
    replace(manifest, segments=(replace(record, data=data),)).write(path)


def _set(name: str, place: Any, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(values: dict[str, Any], description: dict[str, Any]) -> None:
        values[name][place] = value

    return change


def _fit(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(values: dict[str, Any], description: dict[str, Any]) -> None:
        description["fit"][name] = value

    return change


def _describe(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(values: dict[str, Any], description: dict[str, Any]) -> None:
        description[name] = value

    return change


def _cut(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(values: dict[str, Any], description: dict[str, Any]) -> None:
        values[name] = values[name][:-1]

    return change


def _drop(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(values: dict[str, Any], description: dict[str, Any]) -> None:
        del values[name]

    return change


CONES = ("cones_16", "cones_256", "cones_4096", "cone_norms")
FORGERIES = {
    "norm-not-a-number": _set("norms", (0, 0), np.nan),
    "cone-infinite": _set("cone_norms", 0, np.inf),
    "major-of-all": _fit("major", 6),
    "major-zero": _fit("major", 0),
    "major-huge": _fit("major", 2**62),
    "major-text": _fit("major", "2"),
    "dim-huge": _fit("dim", 2**62),
    "step-zero": _fit("major_step", 0.0),
    "step-not-a-number": _fit("minor_step", float("nan")),
    "rotation-error": _fit("rotation_error", 1.0),
    "other-metric": _fit("metric", "l2"),
    "tails-that-need-more-slots": _fit("major", 4),
    "no-fit": _describe("fit", None),
    "fit-a-list": _describe("fit", []),
    "entries-huge": _describe("entries", 2**40),
    "entries-less": _describe("entries", 199),
    "other-format": _describe("format", "other"),
    "another-version": _describe("version", 2),
    **{
        f"short-{name}": _cut(name)
        for name in ("ids", "rows", "major_codes", "minor_codes.0", "norms", *CONES)
    },
    **{
        f"without-{name}": _drop(name)
        for name in ("ids", "rows", "major_codes", "minor_codes.0", "norms", *CONES)
    },
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_segment_is_refused_before_it_is_searched(tmp_path: Path, name: str) -> None:
    _prepared(tmp_path / "db")
    _forge(tmp_path / "db", lambda values, description: None)
    hiernorm.Database.open(tmp_path / "db").search(QUERIES, 3)
    (tmp_path / "db" / "segment-00000099-0001.safetensors").unlink()
    shutil.rmtree(tmp_path / "db")
    _prepared(tmp_path / "db")
    _forge(tmp_path / "db", FORGERIES[name])
    if name == "no-fit":  # rows without codes are a segment too
        hiernorm.Database.open(tmp_path / "db").search(QUERIES, 3)
        return
    with pytest.raises(hiernorm.DatabaseError):
        hiernorm.Database.open(tmp_path / "db").search(QUERIES, 3)


@pytest.mark.parametrize("place", [0, 50, -1])
def test_a_forged_table_of_ids_cannot_lead_outside(tmp_path: Path, place: int) -> None:
    _prepared(tmp_path / "db")
    _forge(tmp_path / "db", _set("sorted_positions", place, 2**32 - 1))
    db = hiernorm.Database.open(tmp_path / "db")
    with pytest.raises(DamagedError, match="the table of ids does not match the entries"):
        db.delete(range(200), ignore_missing=True)
    assert not db.check().ok


def test_major_of_the_support_is_the_one_that_is_forged() -> None:
    assert MAJOR == 2  # FORGERIES change it to other values

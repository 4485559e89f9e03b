"""Damage is neither served nor copied: block checksums, digests of what is rewritten, salvage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hiernorm
from database_support import (
    QUERIES,
    Model,
    assert_equals_model,
    contents,
    create,
    right_hits,
    small_segments,
    vectors,
)
from hiernorm import _core
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import TensorFile
from paths import GOLDEN
from support import assert_same_hits

pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be changed there")

FILLED = ("ids", "rows", "major_codes", "minor_codes.0", "norms", "cones_16", "sorted_ids")


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    # Small blocks, so that a small file has intact ones beside a damaged one.
    with (
        small_segments(entries=2000, cells=True),
        mock.patch("hiernorm.storage.checksums.BLOCK_BYTES", 256),
    ):
        yield


def _prepared(path: Path, kind: str = "hn", count: int = 300) -> Model:
    rows = vectors(1, count)
    create(path, kind).add(rows, range(100, 100 + count))
    return {100 + i: rows[i] for i in range(count)}


def _flip(path: Path, tensor: str, at: int = 0) -> tuple[Path, int]:
    """Change one byte of a tensor of the only segment; returns the file and the offset."""
    file = next(path.glob("segment-*"))
    offset = TensorFile(file).header.tensors[tensor].begin + at
    with file.open("r+b") as handle:
        handle.seek(offset)
        byte = handle.read(1)[0]
        handle.seek(offset)
        handle.write(bytes([byte ^ 0x55]))
    return file, offset


def test_crc32c_has_the_values_of_its_standard() -> None:
    def crc(data: bytes) -> int:
        return _core.crc32c(np.frombuffer(data, np.uint8))

    # RFC 3720, appendix B.4.
    assert crc(b"123456789") == 0xE3069283
    assert crc(bytes(32)) == 0x8A9136AA
    assert crc(b"\xff" * 32) == 0x62A8AB43
    assert crc(bytes(range(32))) == 0x46DD794E
    assert crc(bytes(range(31, -1, -1))) == 0x113FDB5C


def test_crc32c_is_the_same_on_every_instruction_set() -> None:
    data = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
    lengths = [*range(20), 999, 1000]
    before = _core.isa()
    found = {}
    try:
        for isa in _core.available_isas():
            _core.use_isa(isa)
            found[isa] = [
                (_core.crc32c(data[:n]), _core.crc32c(data[n:], _core.crc32c(data[:n])))
                for n in lengths
            ]
    finally:
        _core.use_isa(before)
    assert all(values == found["scalar"] for values in found.values())
    assert {whole for _, whole in found["scalar"]} == {_core.crc32c(data)}


@pytest.mark.parametrize("kind", ["hn", "plain"])
def test_no_changed_byte_of_a_segment_gives_a_wrong_answer(tmp_path: Path, kind: str) -> None:
    model = _prepared(tmp_path / "db", kind)
    right = right_hits(model, 3)
    file = next((tmp_path / "db").glob("segment-*"))
    rng = np.random.default_rng(2)
    refused: dict[str, int] = {}
    for name, tensor in TensorFile(file).header.tensors.items():
        for at in np.unique(rng.integers(0, tensor.end - tensor.begin, 12)).tolist():
            _flip(tmp_path / "db", name, at)
            try:
                hits = hiernorm.Database.open(tmp_path / "db").search(QUERIES, 3)
            except DamagedError:
                refused[name] = refused.get(name, 0) + 1
            else:
                assert_same_hits(hits, right)
            _flip(tmp_path / "db", name, at)
    assert {"rows", "major_codes", "norms", "checksums"} <= set(refused)


@pytest.mark.parametrize("tensor", ["rows", "ids", "sorted_ids", "sorted_positions"])
def test_look_ups_notice_what_they_read(tmp_path: Path, tensor: str) -> None:
    model = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", tensor, 0)
    db = hiernorm.Database.open(tmp_path / "db")
    with pytest.raises(DamagedError, match=r"not what was written|does not match"):
        db.reconstruct(list(model))
    if tensor == "ids":
        with pytest.raises(DamagedError, match="'ids' of the entries at positions 0 to 31 is not"):
            _ = db.ids


def test_intact_blocks_of_a_damaged_file_are_served(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    file, _ = _flip(tmp_path / "db", "rows", 0)
    ids = TensorFile(file).array("ids")
    db = hiernorm.Database.open(tmp_path / "db")
    far = ids[100:].tolist()
    np.testing.assert_array_equal(db.reconstruct(far), [model[i] for i in far])
    with pytest.raises(DamagedError, match="'rows' of the entries at positions 0 to 10 is not"):
        db.reconstruct(ids[:1])


def test_a_certificate_says_what_was_checked(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    for check in ("all", "touched", "settled", "none"):
        db = hiernorm.Database.open(tmp_path / "db", check=check)  # type: ignore[arg-type]
        hits = db.search(QUERIES, 3)
        assert_same_hits(hits, right_hits(model, 3))
        assert hits.certificate.checked == hits.certificate[0].checked == check
        assert f"files checked: {check}" in str(hits.certificate[0])
        assert db.range(QUERIES, 0.5).certificate.checked == check
    index = hiernorm.Index(dim=6)
    index.add(vectors(1, 5))
    assert index.search(QUERIES, 1).certificate.checked == ""
    with pytest.raises(ValueError, match="check must be one of 'all', 'touched', 'settled', 'none"):
        hiernorm.Database.open(tmp_path / "db", check="some")  # type: ignore[arg-type]


def test_check_settled_leaves_codes_and_check_none_leaves_rows(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    _flip(tmp_path / "db", "major_codes", 3)
    with pytest.raises(DamagedError, match="'major_codes' is not what was written"):
        hiernorm.Database.open(tmp_path / "db").search(QUERIES, 3)
    hiernorm.Database.open(tmp_path / "db", check="settled").search(QUERIES, 3)
    with pytest.raises(DamagedError, match="'major_codes' is not what was written"):
        hiernorm.Database.open(tmp_path / "db", check="all")
    _flip(tmp_path / "db", "major_codes", 3)
    file, _ = _flip(tmp_path / "db", "rows", 0)
    first = TensorFile(file).array("ids")[:1]
    with pytest.raises(DamagedError):
        hiernorm.Database.open(tmp_path / "db", check="settled").reconstruct(first)
    hiernorm.Database.open(tmp_path / "db", check="none").reconstruct(first)


def test_databases_without_checksums_open_and_say_so(tmp_path: Path) -> None:
    for golden in sorted((GOLDEN / "v1").glob("*.hn")):
        db = hiernorm.Database.open(golden)
        queries = np.ones((1, db.dim), np.float32)
        assert db.search(queries, 1).certificate.checked == "none"
        # Their digests serve for a check of everything.
        whole = hiernorm.Database.open(golden, check="all")
        assert whole.search(queries, 1).certificate.checked == "all"


def _grow(db: hiernorm.Database) -> None:
    db.add(vectors(5, 300))


def _replace(db: hiernorm.Database) -> None:
    db.upsert(vectors(5, 300), range(100, 400))


def _compact(db: hiernorm.Database) -> None:
    db.compact()


@pytest.mark.parametrize("change", [_grow, _compact])
@pytest.mark.parametrize("tensor", ["rows", "ids"])
def test_damage_is_not_copied_under_a_fresh_digest(
    tmp_path: Path, change: Any, tensor: str
) -> None:
    model = _prepared(tmp_path / "db")
    hiernorm.Database.open(tmp_path / "db").delete([100])
    del model[100]
    db = hiernorm.Database.open(tmp_path / "db")
    db.reconstruct(list(model))  # read before the damage: copying reads again
    at = 8 * 200 if tensor == "ids" else 24 * 200
    _flip(tmp_path / "db", tensor, at)
    before = contents(tmp_path / "db")
    with pytest.raises(DamagedError, match=f"'{tensor}' of the entries at positions 19"):
        change(db)
    assert contents(tmp_path / "db") == before
    _flip(tmp_path / "db", tensor, at)
    assert_equals_model(hiernorm.Database.open(tmp_path / "db"), model)


@pytest.mark.parametrize("name", ["hn-ip.hn", "plain-l2.hn"])
def test_damage_of_a_database_without_checksums_is_not_copied(tmp_path: Path, name: str) -> None:
    import shutil

    shutil.copytree(GOLDEN / "v1" / name, tmp_path / "db")
    file = max((tmp_path / "db").glob("segment-*"), key=lambda path: path.stat().st_size)
    tensor = TensorFile(file).header.tensors["rows"]
    data = bytearray(file.read_bytes())
    data[tensor.begin + 5] ^= 1
    file.write_bytes(data)
    db = hiernorm.Database.open(tmp_path / "db")
    before = contents(tmp_path / "db")
    with pytest.raises(DamagedError, match="'rows' is not what was written"):
        db.compact()
    assert contents(tmp_path / "db") == before
    kept = len(db)
    found = db.salvage()
    assert 0 < found.lost_count == kept - found.kept
    assert db.check().ok


def test_a_snapshot_of_damage_is_refused(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    _flip(tmp_path / "db", "minor_codes.0", 7)
    db = hiernorm.Database.open(tmp_path / "db")
    with pytest.raises(DamagedError, match=r"'minor_codes.0' is not what was written"):
        db.snapshot(tmp_path / "copy")
    with pytest.raises(hiernorm.DatabaseError):
        hiernorm.Database.open(tmp_path / "copy")


def test_salvage_keeps_what_can_be_proved_intact(tmp_path: Path) -> None:
    model = _prepared(tmp_path / "db")
    db = hiernorm.Database.open(tmp_path / "db")
    db.delete([100, 101])
    del model[100], model[101]
    file, _ = _flip(tmp_path / "db", "rows", 24 * 200)
    in_block = TensorFile(file).array("ids")[19 * 256 // 24 - 8 :]
    found = db.salvage()
    lost = set(model) - set(db.ids.tolist())
    assert len(lost) == found.lost_count
    assert 8 <= len(lost) <= 12
    assert found.kept == len(model) - len(lost)
    assert found.lost[0].file == file.name
    np.testing.assert_array_equal(found.lost[0].ids, sorted(lost))
    assert lost <= set(in_block.tolist()) | set(found.lost[0].ids.tolist())
    assert_equals_model(db, {i: row for i, row in model.items() if i not in lost})
    assert db.check().ok
    assert db.salvage().lost == ()


@pytest.mark.parametrize("tensor", ["ids", "major_codes", "cones_16", "sorted_ids", "checksums"])
def test_salvage_loses_nothing_that_the_file_has_twice(tmp_path: Path, tensor: str) -> None:
    model = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", tensor, 9)
    db = hiernorm.Database.open(tmp_path / "db")
    assert db.salvage().lost == ()
    assert_equals_model(db, model)
    assert db.check().ok


def test_the_checksums_are_described_in_the_header(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    file = TensorFile(next((tmp_path / "db").glob("segment-*")))
    about = json.loads(file.header.metadata["checksums"])
    assert about == {"algorithm": "crc32c", "block_bytes": 256}
    expected = []
    for name in file.in_order():
        if name != "checksums" and not name.startswith("padding."):
            data = file.bytes_from(name, 0)
            expected += [_core.crc32c(data[at : at + 256]) for at in range(0, len(data), 256)]
    np.testing.assert_array_equal(file.array("checksums"), expected)
    assert file.in_order()[-1] == "checksums"


def test_every_changed_byte_of_a_manifest_is_noticed(tmp_path: Path) -> None:
    create(tmp_path / "db").add(vectors(1, 20))
    manifest = tmp_path / "db" / "manifest.json"
    whole = manifest.read_bytes()
    for at in range(len(whole)):
        for change in (0x01, 0x29, 0x2A):  # a blank becomes a tab or a new line
            changed = bytearray(whole)
            changed[at] ^= change
            manifest.write_bytes(changed)
            with pytest.raises(hiernorm.DatabaseError):
                hiernorm.Database.open(tmp_path / "db")
    manifest.write_bytes(whole)
    hiernorm.Database.open(tmp_path / "db")


def _in_three_segments(path: Path) -> Model:
    model: Model = {}
    db = create(path, "hn")
    for first, count in ((0, 300), (1000, 120), (2000, 40)):
        rows = vectors(first + 1, count)
        db.add(rows, range(first, first + count))
        model |= {first + i: rows[i] for i in range(count)}
    db.delete([5])
    del model[5]
    assert db.info()["segments"] == 3
    return model


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 100)


def _change_header(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("pattern", ["segment-00000001-*", "live-*"])
@pytest.mark.parametrize("damage", [Path.unlink, _cut, _change_header])
def test_salvage_keeps_the_segments_beside_one_that_cannot_be_opened(
    tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    model = _in_three_segments(tmp_path / "db")
    damage(next((tmp_path / "db").glob(pattern)))
    with pytest.raises(DamagedError):
        hiernorm.Database.open(tmp_path / "db")
    found = hiernorm.Database.salvage_folder(tmp_path / "db")
    assert (found.kept, found.lost_count) == (160, 299)
    assert found.lost[0].file.startswith("segment-00000001-")
    db = hiernorm.Database.open(tmp_path / "db")
    assert_equals_model(db, {i: row for i, row in model.items() if i >= 1000})
    assert db.check().ok

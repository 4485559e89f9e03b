"""Damaged payload is neither served nor copied; salvage keeps entries with intact payload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import hiernorm
from database_support import contents, create, small_segments, vectors
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import TensorFile
from payload_support import assert_payload_fits, payload_of

pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be changed there")

COUNT = 300
EVEN = [None if i % 7 == 0 else i % 2 == 0 for i in range(COUNT)]
TENSORS = ("values.text", "offsets.text", "values.number", "valid.even", "values.even")


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    # Small blocks, so that a small file has intact ones beside a damaged one.
    with small_segments(entries=2000), mock.patch("hiernorm.storage.checksums.BLOCK_BYTES", 16):
        yield


def _prepared(path: Path) -> hiernorm.Database:
    rows = vectors(1, COUNT)
    db = create(path)
    db.add(rows, range(100, 100 + COUNT), payload={**payload_of(rows), "even": EVEN})
    return db


def _flip(path: Path, tensor: str, share: float = 0.5) -> None:
    """Change one byte of a tensor of the only payload file."""
    file = next(path.glob("payload-*"))
    place = TensorFile(file).header.tensors[tensor]
    with file.open("r+b") as handle:
        at = place.begin + int(share * (place.end - place.begin))
        handle.seek(at)
        byte = handle.read(1)[0]
        handle.seek(at)
        handle.write(bytes([byte ^ 0x11]))


def _compact(db: hiernorm.Database) -> None:
    db.delete([100])
    db.compact()


def _grow(db: hiernorm.Database) -> None:
    db.add(vectors(5, COUNT))


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("change", [_grow, _compact])
def test_damaged_payload_is_not_copied_under_a_fresh_digest(
    tmp_path: Path, change: Callable[[hiernorm.Database], None], tensor: str
) -> None:
    db = _prepared(tmp_path / "db")
    assert_payload_fits(db)  # read before the damage: copying reads again
    _flip(tmp_path / "db", tensor)
    before = next((tmp_path / "db").glob("payload-*")).read_bytes()
    with pytest.raises(DamagedError, match=f"'{tensor}' is not what was written"):
        change(db)
    assert next((tmp_path / "db").glob("payload-*")).read_bytes() == before
    assert not db.check().ok


def test_a_snapshot_of_damaged_payload_is_refused(tmp_path: Path) -> None:
    db = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", "values.text")
    with pytest.raises(DamagedError, match=r"'values.text' is not what was written"):
        db.snapshot(tmp_path / "copy")
    with pytest.raises(hiernorm.DatabaseError):
        hiernorm.Database.open(tmp_path / "copy")


def test_a_check_of_all_reads_payload_at_once(tmp_path: Path) -> None:
    _prepared(tmp_path / "db")
    hiernorm.Database.open(tmp_path / "db", check="all")
    _flip(tmp_path / "db", "values.number")
    with pytest.raises(DamagedError, match=r"'values.number' is not what was written"):
        hiernorm.Database.open(tmp_path / "db", check="all")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("tensor", TENSORS)
def test_salvage_keeps_the_entries_whose_payload_is_intact(
    tmp_path: Path, tensor: str, share: float
) -> None:
    db = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", tensor, share)
    found = db.salvage()
    lost = sorted({*range(100, 100 + COUNT)} - set(db.ids.tolist()))
    # A block holds the bits of 128 entries.
    assert 1 <= found.lost_count == len(lost) <= (128 if tensor[:6] != "offset" else 3)
    np.testing.assert_array_equal(found.lost[0].ids, lost)
    assert found.kept == COUNT - len(lost) == len(db)
    assert_payload_fits(db)
    even = db.payload(columns=["even"]).column("even").to_pylist()
    assert even == [EVEN[number - 100] for number in db.ids.tolist()]
    assert db.check().ok
    assert db.salvage().lost == ()


def test_salvage_of_rows_and_payload_loses_what_either_lost(tmp_path: Path) -> None:
    db = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", "values.text", 0.9)
    segment = next((tmp_path / "db").glob("segment-*"))
    rows = TensorFile(segment).header.tensors["rows"]
    data = bytearray(segment.read_bytes())
    data[rows.begin] ^= 1
    with segment.open("r+b") as handle:
        handle.write(data)
    first, ids = TensorFile(segment).array("ids")[0], db.ids
    found = db.salvage()
    assert 2 <= found.lost_count <= 5
    assert first in found.lost[0].ids
    assert len(db) == len(ids) - found.lost_count
    assert_payload_fits(db)
    assert db.check().ok


def test_salvage_of_string_keys_keeps_them_with_their_vectors(tmp_path: Path) -> None:
    rows = vectors(1, COUNT)
    db = hiernorm.Database.create(tmp_path / "db", rows.shape[1], string_keys=True)
    by_key = {f"entry {i}": rows[i] for i in range(COUNT)}
    db.add(rows, list(by_key))
    _flip(tmp_path / "db", "values.key")
    before = contents(tmp_path / "db")
    with pytest.raises(DamagedError, match=r"'values.key' is not what was written"):
        hiernorm.Database.open(tmp_path / "db").reconstruct(["entry 7"])
    assert contents(tmp_path / "db") == before
    found = hiernorm.Database.open(tmp_path / "db").salvage()
    db = hiernorm.Database.open(tmp_path / "db")
    assert 1 <= found.lost_count == COUNT - len(db.keys) <= 4
    np.testing.assert_array_equal(db.reconstruct(db.keys), [by_key[key] for key in db.keys])
    assert db.check().ok


def test_damaged_checksums_of_payload_lose_nothing(tmp_path: Path) -> None:
    db = _prepared(tmp_path / "db")
    _flip(tmp_path / "db", "checksums")
    assert db.salvage().lost == ()
    assert_payload_fits(db)
    assert db.check().ok

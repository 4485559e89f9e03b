"""Copies of shards on a local disk: checked, copied again, never served damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import hiernorm
from database_support import QUERIES, right_hits, vectors
from hiernorm.distributed import ShardedDatabase, shard_of
from hiernorm.distributed.location import Location, copy_shard
from hiernorm.distributed.manifest import shard_name
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import TensorWriter
from sharded_support import assert_equals_index, create_sharded
from support import assert_same_hits


class ArrowLocation(Location):
    """A folder read through pyarrow, as a bucket would be."""

    def __init__(self, folder: Path) -> None:
        arrow = pytest.importorskip("pyarrow.fs")
        super().__init__(folder)
        self._remote = arrow.LocalFileSystem()


def test_what_is_not_a_folder_is_copied_and_searched_but_not_changed(no_ray, tmp_path):
    rows = vectors(1, 300)
    db = create_sharded(tmp_path / "db", 2)
    db.add(rows)
    place = ArrowLocation(tmp_path / "db")
    assert place.read_manifest() == db._reader.manifest
    pin = db._reader.manifest.pins[0]
    folder = copy_shard(place, shard_name(0), pin.sha256, tmp_path / "copies")
    inside = np.flatnonzero(shard_of(np.arange(300), 2) == 0)
    copied = hiernorm.Database.open(folder)
    model = dict(zip(inside.tolist(), rows[inside], strict=True))
    assert_same_hits(copied.search(QUERIES, 5), right_hits(model, 5))
    assert copied.check().ok
    db.upsert(rows[:1], [0])
    for shard in range(2):
        sha256 = db._reader.manifest.pins[shard].sha256
        copy_shard(place, shard_name(shard), sha256, tmp_path / "copies")
    assert hiernorm.Database.open(folder).ids.tolist() == inside.tolist()
    with pytest.raises(hiernorm.DatabaseError, match="can be searched, not changed"):
        place.folder  # noqa: B018


@pytest.mark.parametrize("damage", ["zeros", "row", "missing"])
def test_a_damaged_copy_of_a_shard_is_copied_again(no_ray, tmp_path, damage):
    rows = vectors(1, 300)
    create_sharded(tmp_path / "db", 2).add(rows)
    model = dict(enumerate(rows))
    with ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db:
        assert_same_hits(db.search(QUERIES, 5), right_hits(model, 5))
    for file in (tmp_path / "copies").glob("*/segment-*"):
        data = bytearray(file.read_bytes())
        if damage == "zeros":
            data[:] = bytes(len(data))
        begin = len(data) - 4000
        data[begin : begin + 3000] = bytes(3000)
        file.unlink()
        if damage != "missing":
            file.write_bytes(data)
    with ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db:
        assert_equals_index(db, model)
        assert db.search(QUERIES, 5).certificate.checked == "touched"
        assert db.check().ok


def test_a_copy_of_a_damaged_shard_is_refused(no_ray, tmp_path):
    create_sharded(tmp_path / "db", 1).add(vectors(1, 30))
    file = next((tmp_path / "db").glob("*/segment-*"))
    data = bytearray(file.read_bytes())
    data[-200] ^= 1
    file.write_bytes(data)
    with (
        ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db,
        pytest.raises(DamagedError, match="is not what was written: restore it from a copy"),
    ):
        db.search(QUERIES, 1)
    assert list((tmp_path / "copies").glob("*/segment-*")) == []


def test_a_copy_without_checksums_is_read_before_it_is_served(no_ray, tmp_path, monkeypatch):
    # As a database of an earlier version: nothing is compared while it is searched.
    write = TensorWriter.__init__
    monkeypatch.setattr(
        TensorWriter, "__init__", lambda self, *given, checksums=False: write(self, *given)
    )
    rows = vectors(1, 300)
    create_sharded(tmp_path / "db", 1).add(rows)
    model = dict(enumerate(rows))
    with ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db:
        assert db.search(QUERIES, 5).certificate.checked == "none"
    for file in (tmp_path / "copies").glob("*/segment-*"):
        data = bytearray(file.read_bytes())
        data[-4000:] = bytes(4000)
        file.write_bytes(data)
    with ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db:
        assert_equals_index(db, model)


@pytest.mark.skipif(os.name == "nt", reason="devices of POSIX systems")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("instead", ["device", "fifo", "longer"])
def test_a_copy_ends_where_its_original_should(no_ray, tmp_path, instead):
    create_sharded(tmp_path / "db", 1).add(vectors(1, 30))
    file = next((tmp_path / "db").glob("*/segment-*"))
    data = file.read_bytes()
    file.unlink()
    if instead == "device":
        file.symlink_to("/dev/zero")
    elif instead == "fifo":
        os.mkfifo(file)
    else:
        file.write_bytes(bytes(8) + data)
    with (
        ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db,
        pytest.raises((DamagedError, OSError), match=r"not what was written|a regular file"),
    ):
        db.search(QUERIES, 1)
    assert list((tmp_path / "copies").glob("*/segment-*")) == []


def test_a_check_of_copies_reads_the_originals_too(no_ray, tmp_path):
    create_sharded(tmp_path / "db", 1).add(vectors(1, 300))
    with ShardedDatabase.open(tmp_path / "db", local=tmp_path / "copies") as db:
        assert db.check().ok
        file = next((tmp_path / "db").glob("*/segment-*"))
        data = bytearray(file.read_bytes())
        data[-200] ^= 1
        file.write_bytes(data)
        found = db.check().differences
    assert len(found) == 1
    assert str(file) in found[0]

"""Shards without Ray: placement, merging, waves, places, manifests, and what is refused."""

from __future__ import annotations

import importlib
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hiernorm
from database_support import ALPHA, MAJOR, QUERIES, D, right_hits, vectors
from hiernorm.cli.app import app
from hiernorm.distributed import ShardedDatabase, build, shard_of
from hiernorm.distributed.answers import merge_best
from hiernorm.distributed.fan_out import plan_waves
from hiernorm.distributed.manifest import shard_name
from hiernorm.distributed.placement import split_by_shard
from hiernorm.storage.errors import DamagedError, FormatVersionError, LockedError, NotADatabaseError
from hiernorm.storage.lock import WriterLock
from sharded_support import assert_equals_index, create_sharded
from support import assert_same_hits, expected_hits, raises_text


def test_placement_is_fixed_for_ever():
    ids = [0, 1, 2, 3, 1000, -1, -(2**63), 2**63 - 1]
    assert shard_of(ids, 7).tolist() == [2, 2, 4, 2, 0, 0, 6, 2]
    assert shard_of(ids, 1).tolist() == [0] * 8
    assert shard_of([0], 99_991) == 0xE220A8397B1DCDAF % 99_991  # splitmix64's first number


@pytest.mark.parametrize("stride", [1, 2, 1024])
def test_placement_is_even_whatever_the_ids_have_in_common(stride):
    counts = np.bincount(shard_of(np.arange(70_000) * stride, 7), minlength=7)
    assert abs(counts - 10_000).max() < 500  # five standard deviations


def test_splitting_by_shard_loses_nothing_and_keeps_the_order():
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, 500)
    places = split_by_shard(ids, 5)
    assert sorted(np.concatenate(list(places.values())).tolist()) == list(range(500))
    for shard, at in places.items():
        assert (shard_of(ids[at], 5) == shard).all()
        assert (np.diff(at) > 0).all()
    assert split_by_shard(ids[:0], 5) == {}


@pytest.mark.parametrize("k", [1, 3, 40])
def test_merging_is_ranking_all_at_once_however_often_a_hit_comes(k):
    rng = np.random.default_rng(k)
    rows = vectors(1, 60)
    right = expected_hits(QUERIES, rows, k)
    parts = []
    for _ in range(4):  # they overlap, and together hold every entry
        some = np.flatnonzero(rng.random(60) < 0.5)
        parts.append(expected_hits(QUERIES, rows[some], k, ids=some))
    parts.append(right)
    merged = merge_best(parts, k)
    np.testing.assert_array_equal(merged[0], right[0])
    np.testing.assert_array_equal(merged[1], right[1])


@pytest.mark.parametrize("size", [None, 1, 2, 5, 100])
@pytest.mark.parametrize("shards", [1, 2, 3, 4, 5, 7, 16])
def test_waves_ask_every_shard_once(shards, size):
    for turn in (0, 1, 1000):
        asked = [shard for wave in plan_waves(shards, size, turn) for shard in wave]
        assert sorted(asked) == list(range(shards))


def test_shards_are_ordinary_databases(no_ray, tmp_path):
    rows = vectors(1, 90)
    db = create_sharded(tmp_path / "db", 3)
    db.add(rows)
    for shard in range(3):
        part = hiernorm.Database.open(tmp_path / "db" / shard_name(shard))
        np.testing.assert_array_equal(part.ids, np.flatnonzero(shard_of(np.arange(90), 3) == shard))
        assert part.check().ok


def test_batches_of_any_size_give_the_same_answer(no_ray, tmp_path):
    rows = vectors(1, 90)
    db = create_sharded(tmp_path / "db", 3)
    db.add(rows)
    queries = vectors(2, 25)
    right = expected_hits(queries, rows, 4)
    for batch in (None, 1, 7, 25):
        hits = db.search(queries, 4, batch_size=batch)
        assert_same_hits(hits, right)
        assert len(hits.certificate) == 25
    assert db.search(queries[:0], 4).ids.shape == (0, 4)


def test_files_larger_than_memory_go_by_parts(no_ray, tmp_path):
    rows = vectors(1, 90)
    np.savez(tmp_path / "rows.npz", vectors=rows, ids=np.arange(90) * 3)
    db = create_sharded(tmp_path / "db", 3)
    seen = []
    assert db.add(tmp_path / "rows.npz", progress=lambda done, total: seen.append(done)) == 90
    assert seen[-1] == 90
    assert_equals_index(db, dict(zip(range(0, 270, 3), rows, strict=True)))
    assert not (tmp_path / "db" / "staging").exists()
    assert db.add(QUERIES[:1]) == 1
    assert db.ids[-1] == 268


def test_a_change_is_refused_as_a_whole(no_ray, tmp_path):
    rows = vectors(1, 30)
    db = create_sharded(tmp_path / "db", 3)
    db.add(rows)
    with pytest.raises(ValueError, match="id 40 is given twice"):
        db.add(rows[:3], [40, 41, 40])
    with pytest.raises(ValueError, match="id 50 is given twice"):
        db.upsert(iter([(np.array([50]), rows[:1]), (np.array([50]), rows[:1])]))
    bad = rows[:2].copy()
    bad[1, 3] = np.inf
    with pytest.raises(ValueError, match="row 1, dimension 3 is infinite"):
        db.add(bad, [60, 61])
    with pytest.raises(ValueError, match="2 vectors need 2 ids, got 1"):
        db.add(rows[:2], [70])
    assert db.generation == 1
    assert_equals_index(db, dict(enumerate(rows)))
    assert not list((tmp_path / "db").rglob("*.prepared"))


def test_one_writer_at_a_time(no_ray, tmp_path):
    db = create_sharded(tmp_path / "db", 2)
    with WriterLock(tmp_path / "db", 0.0), pytest.raises(LockedError, match="is being written by"):
        db.add(vectors(1, 3))


def test_a_shard_that_was_changed_by_other_means_is_damage(no_ray, tmp_path):
    db = create_sharded(tmp_path / "db", 2)
    db.add(vectors(1, 30))
    hiernorm.Database.open(tmp_path / "db" / shard_name(1)).add(vectors(2, 1), [1000])
    with pytest.raises(DamagedError, match="the manifest of the whole names 1"):
        db.upsert(vectors(3, 30), np.arange(30))
    fresh = ShardedDatabase.open(tmp_path / "db", deadline=0.2)
    with pytest.raises(hiernorm.DatabaseError, match="is at generation 2, not 1"):
        fresh.search(QUERIES, 1)


@pytest.mark.parametrize("make", [lambda path: path, lambda path: Path(path).as_uri()])
def test_a_place_is_a_path_or_a_uri(no_ray, tmp_path, make):
    db = create_sharded(make(tmp_path / "db"), 2)
    db.add(vectors(1, 30))
    assert len(ShardedDatabase.open(tmp_path / "db")) == 30


def test_refresh_of_shards_does_not_undo_the_change_of_another_thread(no_ray, tmp_path):
    with create_sharded(tmp_path / "db", 2) as db:
        before = db._reader.manifest
        db.add(vectors(1, 5))
        changed = db._reader.manifest
        other = ShardedDatabase.open(tmp_path / "db")
        other.add(vectors(2, 5))
        db.refresh()
        db._reader.move_on(before, changed)  # a thread that was slow to show its change
        assert len(db) == 10


def test_manifests_that_are_not_as_written_are_refused(no_ray, tmp_path):
    create_sharded(tmp_path / "db", 2)
    path = tmp_path / "db" / "shards.json"
    text = path.read_text()
    for change, error in (
        (lambda m: m.update(generation=3), DamagedError),
        (lambda m: m.update(version=3), FormatVersionError),
        (lambda m: m.update(placement="modulo"), FormatVersionError),
        (lambda m: m.update(format="something"), NotADatabaseError),
    ):
        members = json.loads(text)
        change(members)
        path.write_text(json.dumps(members))
        with pytest.raises(error):
            ShardedDatabase.open(tmp_path / "db")
    path.write_text(text[:-20])
    with pytest.raises(DamagedError, match="it is not JSON"):
        ShardedDatabase.open(tmp_path / "db")


def test_what_cannot_be_is_refused(no_ray, tmp_path):
    with pytest.raises(NotADatabaseError, match=r"has no shards\.json: not a sharded database"):
        ShardedDatabase.open(tmp_path / "nothing")
    with raises_text(ValueError, "shards must be at least 1, got 0"):
        ShardedDatabase.create(tmp_path / "db", D, shards=0)
    db = create_sharded(tmp_path / "db", 2)
    with pytest.raises(FileExistsError, match="is a database already"):
        create_sharded(tmp_path / "db", 2)
    with raises_text(ValueError, "deadline must be positive seconds, got 0"):
        db.search(QUERIES, 1, deadline=0)
    with raises_text(ValueError, "wave must be at least 1, got 0"):
        db.search(QUERIES, 1, wave=0)
    with raises_text(ValueError, "queries have 5 dimensions, the index has 6"):
        db.search(QUERIES[:, :5], 1)
    with raises_text(ValueError, "threshold must be finite, got nan"):
        db.range(QUERIES, float("nan"))
    single = hiernorm.Database.create(tmp_path / "single", D, major=MAJOR, alpha=ALPHA)
    with pytest.raises(TypeError, match="a Selection belongs to one Database"):
        db.search(QUERIES, 1, where=single.select([1]))


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    create_with = {"dim": D, "shards": 2}
    found = importlib.import_module

    def missing(name: str) -> object:
        if name == "ray":
            raise ImportError("No module named 'ray'", name="ray")
        return found(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"this needs ray: pip install 'hiernorm\[ray\]'"):
        ShardedDatabase.create(tmp_path / "db", **create_with)
    np.save(tmp_path / "rows.npy", vectors(1, 3))
    with pytest.raises(ImportError, match=r"pip install 'hiernorm\[ray\]'"):
        build(tmp_path / "other", tmp_path / "rows.npy", shards=2)


def test_the_command_line_without_ray(no_ray, tmp_path, monkeypatch):
    monkeypatch.setattr("hiernorm.cli.cluster._ray", lambda address: nullcontext())
    monkeypatch.setattr("hiernorm.cli.requirements.check_extra", lambda *_: None)
    rows = vectors(1, 60)
    np.save(tmp_path / "queries.npy", QUERIES)
    db = create_sharded(tmp_path / "db", 2)
    db.add(rows)
    database, queries = str(tmp_path / "db"), str(tmp_path / "queries.npy")

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["cluster", *words])
        assert done.exit_code == code, done.output
        return done.output

    found = json.loads(run("search", database, queries, "-k", "3", "--json"))
    ids, scores = right_hits(dict(enumerate(rows)), 3)
    assert found["exact"]
    assert found["missing_shards"] == []
    assert [[hit["id"] for hit in answer] for answer in found["answers"]] == ids.tolist()
    assert [[hit["score"] for hit in answer] for answer in found["answers"]] == scores.tolist()
    assert "shards           2\n" in run("info", database)
    assert run("check", database) == f"{database}: all is as it was written\n"
    segment = next((tmp_path / "db" / "shard-00001").glob("segment-*"))
    data = bytearray(segment.read_bytes())
    data[-100] ^= 1
    segment.write_bytes(data)
    assert "shard 1" in run("check", database, code=3)
    assert "not a sharded database" in run("info", str(tmp_path / "none"), code=5)

"""Deadlines of sharded changes: one for all steps of a change."""

from __future__ import annotations

import time

import numpy as np
import pytest

from database_support import vectors
from hiernorm.distributed.errors import ShardsMissingError
from sharded_support import create_sharded


def test_a_change_has_one_deadline_for_all_of_its_steps(no_ray, tmp_path):
    deadlines = []

    def record(method, arguments, until):
        deadlines.append((method, until))
        return call(method, arguments, until)

    with create_sharded(tmp_path / "db", 2, change_deadline=6.0) as db:
        call, db._actor_pool.call = db._actor_pool.call, record
        db.add(vectors(1, 30), range(30))
        db.delete([3])
    assert [method for method, _ in deadlines] == ["holds", "prepare", "resolve"] * 2
    for step in (deadlines[:3], deadlines[3:]):
        assert len({until for _, until in step}) == 1


def test_keys_are_looked_up_within_the_deadline_of_their_change(no_ray, tmp_path):
    pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
    with create_sharded(
        tmp_path / "db", 2, string_keys=True, deadline=1000.0, change_deadline=6.0
    ) as db:
        db.add(vectors(1, 30), [f"key {i}" for i in range(30)])
        waits = _record_waits(db)
        db.delete(["key 3", "key 4"])
    assert "ids_of" in waits
    assert max(max(times) for times in waits.values()) <= 6.0


def test_all_pieces_of_a_source_have_one_deadline(no_ray, tmp_path):
    def pieces():
        for first in range(0, 40, 10):
            yield np.arange(first, first + 10), vectors(first, 10)

    with create_sharded(tmp_path / "db", 2, change_deadline=60.0) as db:
        waits = _record_waits(db, pause=0.05)
        db.add(pieces())
    # Each look-up took 50 ms, which the steps after it have no longer.
    assert len(waits["holds"]) == 4
    for number, left in enumerate([*waits["holds"], *waits["prepare"]]):
        assert left <= 60.0 - 0.05 * number


def test_a_membership_test_has_the_deadline_of_queries(no_ray, tmp_path):
    with create_sharded(tmp_path / "db", 2, deadline=6.0, change_deadline=1000.0) as db:
        db.add(vectors(1, 30))
        waits = _record_waits(db)
        assert 3 in db
        assert 30 not in db
    assert max(waits["holds"]) <= 6.0


def _record_waits(db, pause=0.0):
    """Of every call to shards from now on, the seconds until its deadline, by method."""
    waits = {}
    call = db._actor_pool.call

    def record(method, arguments, until):
        waits.setdefault(method, []).append(until - time.monotonic())
        time.sleep(pause)
        return call(method, arguments, until)

    db._actor_pool.call = record
    return waits


def test_a_change_past_its_deadline_does_not_wait_for_the_shards_again(no_ray, tmp_path):
    with create_sharded(tmp_path / "db", 2, change_deadline=0.01) as db:
        waited = []
        call = db._actor_pool.call

        def late(method, arguments, until):
            if method == "prepare":
                time.sleep(max(0.0, until - time.monotonic()))
                db._actor_pool.silent = {0}
            waited.append((method, until - time.monotonic()))
            return call(method, arguments, until)

        db._actor_pool.call = late
        with pytest.raises(ShardsMissingError):
            db.add(vectors(1, 30))
        assert waited[-1][0] == "resolve"
        assert waited[-1][1] <= 0.0
        db._actor_pool.silent = set()
        db._actor_pool.call = call
        db._writer._deadline = 60.0
        db.add(vectors(1, 30))
        assert len(db) == 30

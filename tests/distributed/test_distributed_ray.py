"""Shards on a Ray cluster of several nodes on this machine: right answers or explicit errors."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from build_support import check_interrupted_build
from crash_writer import apply_to_database, apply_to_model
from database_support import QUERIES, Model, right_hits, vectors
from hiernorm.distributed import ShardedDatabase, ShardsMissingError
from ray_cluster import PATIENCE, RAY_MARKS, add_node, cluster
from sharded_support import assert_equals_index, create_sharded, digest_of
from support import assert_same_hits

ray: Any = pytest.importorskip("ray")
pytestmark = RAY_MARKS
__all__ = ["cluster"]


@pytest.fixture(scope="module")
def filled(cluster, tmp_path_factory) -> Iterator[tuple[ShardedDatabase, Model]]:
    """A database of three shards after some operations, which tests read."""
    with create_sharded(tmp_path_factory.mktemp("shards") / "db", 3, deadline=PATIENCE) as db:
        model = check_random_operations(db, steps=6)
        rows = vectors(5, 400)
        db.add(rows, np.arange(1000, 1400))
        yield db, model | dict(zip(range(1000, 1400), rows, strict=True))


@contextmanager
def stopped(db: ShardedDatabase, shard: int) -> Iterator[None]:
    """The process of a shard stands still: the node is up, nobody answers."""
    pin = db._reader.manifest.pins[shard]
    process = ray.get(db._actor_pool.actor(shard).info.remote(pin))["process"]
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def check_random_operations(db: ShardedDatabase, steps: int) -> Model:
    model: Model = {}
    for number in range(steps):
        apply_to_database(db, 3, number)
        model = apply_to_model(model, 3, number)
        if number % 5 == 4:
            assert_equals_index(db, model)
    return model


def test_answers_are_those_of_one_index(filled):
    db, model = filled
    assert_equals_index(db, model, waves=(None, 1, 2))
    assert db.check().ok
    assert db.digest == digest_of(model, db)


@pytest.mark.ray
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_answers_are_those_of_one_index_for_any_number_of_shards(cluster, tmp_path, shards):
    with create_sharded(tmp_path / "db", shards, deadline=PATIENCE) as db:
        model = check_random_operations(db, steps=60)
        db.compact()
        assert_equals_index(db, model, waves=(None, 1, 2))
        assert db.check().ok
        assert db.digest == digest_of(model, db)


def test_an_actor_that_dies_comes_back_and_answers(filled):
    db, model = filled
    for no_restart in (False, True):
        ray.kill(db._actor_pool.actor(1), no_restart=no_restart)
        assert_same_hits(db.search(QUERIES, 5), right_hits(model, 5))


def test_a_silent_shard_is_an_error_that_names_it_or_a_partial_answer_that_says_so(filled):
    db, model = filled
    db.search(QUERIES, 5)
    with stopped(db, 1):
        with pytest.raises(ShardsMissingError, match="shard 1 of 3 did not answer") as caught:
            db.search(QUERIES, 5, deadline=1)
        assert caught.value.shards == (1,)
        hits = db.search(QUERIES, 5, deadline=1, allow_partial=True)
        missing = hits.certificate.missing
        assert missing is not None
        assert missing.shards == (1,)
        lost = dict(zip(model, missing.holds(list(model)).tolist(), strict=True))
        there = {i: row for i, row in model.items() if not lost[i]}
        assert_same_hits(hits, right_hits(there, 5))
        assert not hits.certificate.exact.any()
        assert np.isinf(hits.certificate.gap).all()
        # Two calls wait at the shard; two more may, and whoever comes then is told so.
        for _ in range(2):
            with pytest.raises(ShardsMissingError):
                db.search(QUERIES, 5, deadline=0.5)
        with pytest.raises(ShardsMissingError, match="too many calls are on their way to it"):
            db.search(QUERIES, 5, deadline=0.5)
    assert_same_hits(db.search(QUERIES, 5), right_hits(model, 5))


def test_errors_of_a_shard_are_those_of_a_database(filled):
    db, _ = filled
    before = db.generation
    with pytest.raises(ValueError, match="id 1007 is in the database already: upsert replaces it"):
        db.add(QUERIES[:1], [1007])
    with pytest.raises(KeyError, match="id 400 is not in the database"):
        db.delete([1003, 400])
    with pytest.raises(KeyError, match="id 400 is not in the database"):
        db.reconstruct([400])
    with pytest.raises(ValueError, match="queries row 0, dimension 2 is NaN"):
        db.search(np.array([0, 0, np.nan, 0, 0, 0]), 1)
    assert db.generation == before


def check_answers_while_something_dies(
    db: ShardedDatabase, model: Model, kill: Any, threads: int = 2, least: int = 5
) -> None:
    """Every answer is right or an explicit error; and right again when all is over."""
    right = right_hits(model, 5)
    results: list[str] = []
    problems: list[BaseException] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            try:
                assert_same_hits(db.search(QUERIES, 5, deadline=20, wave=1), right)
                results.append("right")
            except ShardsMissingError:
                results.append("missing")
            except BaseException as error:
                problems.append(error)
                return

    askers = [threading.Thread(target=ask) for _ in range(threads)]
    for fan_out in askers:
        fan_out.start()
    kill()
    end = time.monotonic() + PATIENCE
    before = results.count("right")
    while results.count("right") < before + least and time.monotonic() < end and not problems:
        time.sleep(0.05)
    over.set()
    for fan_out in askers:
        fan_out.join()
    assert not problems, problems
    assert results.count("right") >= before + least
    assert_same_hits(db.search(QUERIES, 5, deadline=PATIENCE), right)


def test_a_node_that_dies_while_queries_run(cluster, filled):
    db, model = filled
    db.search(QUERIES, 5)

    def kill() -> None:
        cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)

    check_answers_while_something_dies(db, model, kill)


@pytest.mark.ray
def test_actors_and_nodes_that_die_again_and_again(cluster, filled):
    db, model = filled
    rng = np.random.default_rng(0)

    def kill_actors() -> None:
        for _ in range(5):
            ray.kill(db._actor_pool.actor(int(rng.integers(3))), no_restart=bool(rng.integers(2)))
            time.sleep(float(rng.random()))

    def kill_nodes() -> None:
        for node in cluster.worker_nodes.copy():
            cluster.remove_node(node, allow_graceful=False)
            add_node(cluster)

    for _ in range(3):
        check_answers_while_something_dies(db, model, kill_actors, threads=3)
        check_answers_while_something_dies(db, model, kill_nodes, threads=3)


def wait_for(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def check_readers_beside_a_writer(path: Path, changes: int, readers: int) -> None:
    """Each answer is the exhaustive one of the generation that its reader is at."""
    models: dict[int, Model] = {0: {}}
    answers: list[tuple[int, Any]] = []
    problems: list[BaseException] = []
    over = threading.Event()

    def read(db: ShardedDatabase) -> None:
        try:
            while not over.is_set() or db.refresh():
                manifest = db._reader.manifest
                hits = db.search(QUERIES, 4)
                if db._reader.manifest == manifest:
                    answers.append((manifest.generation, hits))
                db.refresh()
        except BaseException as error:
            problems.append(error)

    with create_sharded(path, 2, deadline=PATIENCE) as db:
        others = [ShardedDatabase.open(path, deadline=PATIENCE) for _ in range(readers)]
        threads = [threading.Thread(target=read, args=(other,)) for other in others]
        for thread in threads:
            thread.start()
        model: Model = {}
        for number in range(changes):
            apply_to_database(db, 11, number)
            model = apply_to_model(model, 11, number)
            models[db.generation] = model
            if number % 3 == 0:  # else a busy machine lets readers see the last one at best
                now = db.generation
                wait_for(lambda: problems or any(seen >= now for seen, _ in answers))  # noqa: B023
        over.set()
        for thread in threads:
            thread.join()
        for other in others:
            other.close()
    assert not problems, problems
    assert len({generation for generation, _ in answers}) > 1
    for generation, hits in answers:
        assert_same_hits(hits, right_hits(models[generation], 4))
        assert hits.certificate.exact.all()


def test_readers_beside_a_writer(cluster, tmp_path):
    check_readers_beside_a_writer(tmp_path / "db", changes=6, readers=1)


@pytest.mark.ray
def test_readers_beside_a_writer_for_long(cluster, tmp_path):
    check_readers_beside_a_writer(tmp_path / "db", changes=200, readers=3)


def test_a_build_goes_on_where_it_stopped_and_doubles_nothing(cluster, tmp_path):
    check_interrupted_build(tmp_path, ("split",), shards=1)

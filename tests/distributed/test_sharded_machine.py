"""Any sequence of operations on shards, and faults in between: a dictionary, searched in full."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from database_support import QUERIES, Model, right_hits, small_segments, vectors
from hiernorm.distributed import ShardedDatabase, ShardsMissingError, shard_of
from machine_support import WriterAndReader, ids_of_pool, seeds
from sharded_support import assert_equals_index, create_sharded, digest_of, in_process
from support import assert_same_hits


class KilledError(BaseException):
    """The process dies here."""


class ShardedMachine(WriterAndReader):
    """One writer, a reader of an older generation, and the model of each."""

    @initialize(
        shards=st.sampled_from([1, 2, 3, 7]),
        kind=st.sampled_from(["hn", "plain"]),
        metric=st.sampled_from(["ip", "cosine", "l2"]),
    )
    def begin(self, shards: int, kind: str, metric: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.patches = [small_segments(entries=16), in_process()]
        for patch in self.patches:
            patch.__enter__()
        self.metric = metric
        self.db = create_sharded(self.folder / "db", shards, kind, metric)
        self.reader = ShardedDatabase.open(self.folder / "db")
        self.copy = ShardedDatabase.open(self.folder / "db", local=self.folder / "copies")
        self.model: Model = {}
        self.seen: Model = {}

    def teardown(self) -> None:
        if hasattr(self, "patches"):
            for patch in reversed(self.patches):
                patch.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(ids=ids_of_pool, seed=seeds, in_pieces=st.booleans())
    def add(self, ids: list[int], seed: int, in_pieces: bool) -> None:
        rows = vectors(seed, len(ids))
        half = len(ids) // 2
        pieces = [(np.array(ids[:half]), rows[:half]), (np.array(ids[half:]), rows[half:])]
        source = (iter(pieces[half == 0 :]),) if in_pieces else (rows, ids)
        known = [i for i in ids if i in self.model]
        if known:
            with pytest.raises(ValueError, match=f"id {known[0]} is in the database already"):
                self.db.add(*source)
            return
        assert self.db.add(*source) == len(ids)
        self.model |= dict(zip(ids, rows, strict=True))

    @rule()
    def actors_die_and_come_back(self) -> None:
        self.db._actor_pool.restart()

    @rule()
    def actors_of_the_reader_die_and_come_back(self) -> None:
        self.reader._actor_pool.restart()
        if self.reader.generation < self.db.generation:
            self.reader.search(QUERIES, 1)  # its files may be gone: then it moves on, as a whole
            if self.reader.generation == self.db.generation:
                self.seen = dict(self.model)
                return
            self.refresh_the_reader()

    @rule(
        ids=ids_of_pool,
        seed=seeds,
        method=st.sampled_from(["prepare", "resolve"]),
        calls=st.integers(0, 6),
    )
    def the_writer_dies(self, ids: list[int], seed: int, method: str, calls: int) -> None:
        """Before some call of a change: it has happened as a whole or not at all."""
        left = calls

        def die(called: str, shard: int) -> None:
            nonlocal left
            if called == method:
                left -= 1
                if left < 0:
                    raise KilledError

        rows = vectors(seed, len(ids))
        before = self.db.generation
        self.db._actor_pool.fault = die
        with suppress(KilledError):
            self.db.upsert(rows, ids)
        self.db = ShardedDatabase.open(self.folder / "db")
        if self.db.generation > before:
            self.model |= dict(zip(ids, rows, strict=True))

    @rule(ids=ids_of_pool, seed=seeds, shard=st.integers(0, 6))
    def a_change_meets_a_silent_shard(self, ids: list[int], seed: int, shard: int) -> None:
        self.db._actor_pool.silent = {shard}
        rows = vectors(seed, len(ids))
        if shard in shard_of(ids, self.db.shards):
            with pytest.raises(ShardsMissingError) as caught:
                self.db.upsert(rows, ids)
            assert caught.value.shards == (shard,)
        else:
            self.db.upsert(rows, ids)
            self.model |= dict(zip(ids, rows, strict=True))
        self.db._actor_pool.silent = set()

    @rule(ids=ids_of_pool, k=st.integers(1, 6), wave=st.sampled_from([None, 1, 2]))
    def search_among(self, ids: list[int], k: int, wave: int | None) -> None:
        allowed = {i: row for i, row in self.model.items() if i in ids}
        right = right_hits(allowed, k, self.metric)
        mask = np.isin(self.db.ids, np.array(ids))
        for where in (ids, mask, lambda found: np.isin(found, np.array(ids))):
            hits = self.db.search(QUERIES, k, where=where, wave=wave, batch_size=3)
            assert_same_hits(hits, right)
            assert hits.certificate.exact.all()
            assert hits.certificate.entries == len(allowed)

    @rule(shard=st.integers(0, 6), k=st.integers(1, 6), wave=st.sampled_from([None, 1]))
    def search_without_a_shard(self, shard: int, k: int, wave: int | None) -> None:
        if shard >= self.db.shards:
            return
        self.db._actor_pool.silent = {shard}
        with pytest.raises(ShardsMissingError, match=f"shard {shard} of {self.db.shards} did not"):
            self.db.search(QUERIES, k, wave=wave)
        hits = self.db.search(QUERIES, k, wave=wave, allow_partial=True)
        self.db._actor_pool.silent = set()
        missing = hits.certificate.missing
        assert missing is not None
        assert missing.shards == (shard,)
        lost = missing.holds(np.array(list(self.model), np.int64))
        there = {
            i: self.model[i] for i, gone in zip(list(self.model), lost, strict=True) if not gone
        }
        assert missing.entries == lost.sum()
        assert hits.certificate.entries == len(there)
        assert not hits.certificate.exact.any()
        assert_same_hits(hits, right_hits(there, k, self.metric))

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        if hasattr(self, "db"):
            assert_equals_index(self.db, self.model, self.metric)
            assert_equals_index(self.reader, self.seen, self.metric)

    @rule()
    def copies_answer_alike(self) -> None:
        self.copy.refresh()
        assert_equals_index(self.copy, self.model, self.metric)

    @rule()
    def verify(self) -> None:
        assert self.db.check().ok
        assert self.db.digest == digest_of(self.model, self.db)


class TestSharded(ShardedMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=15, stateful_step_count=20)


@pytest.mark.long
class TestShardedForLong(ShardedMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=300, stateful_step_count=40, derandomize=False)

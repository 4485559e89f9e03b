"""Any sequence of operations: the database is a dictionary with exhaustive search."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

import hiernorm
from database_support import (
    QUERIES,
    D,
    Model,
    arrays_of,
    assert_equals_model,
    create,
    right_hits,
    small_segments,
    vectors,
)
from hiernorm import reference
from machine_support import WriterAndReader, ids_of_pool, seeds
from support import assert_same_bits, assert_same_hits


class DatabaseMachine(WriterAndReader):
    """One writer, a second handle that reads an older generation, and the model of each."""

    @initialize(
        kind=st.sampled_from(["hn", "plain"]),
        metric=st.sampled_from(["ip", "cosine", "l2"]),
        cells=st.sampled_from([None, True]),
    )
    def begin(self, kind: str, metric: str, cells: bool | None) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.small = small_segments(entries=16, cells=cells)
        self.small.__enter__()
        self.metric = metric
        self.db = create(self.folder / "db", kind, metric)
        self.model: Model = {}
        self.reader = hiernorm.Database.open(self.folder / "db")
        self.seen: Model = {}
        self.copies = 0

    def teardown(self) -> None:
        if hasattr(self, "small"):
            self.small.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(ids=ids_of_pool, seed=seeds)
    def add(self, ids: list[int], seed: int) -> None:
        rows = vectors(seed, len(ids))
        known = [i for i in ids if i in self.model]
        if known:
            with pytest.raises(ValueError, match=f"id {known[0]} is in the database already"):
                self.db.add(rows, ids)
            return
        assert self.db.add(rows, ids) == len(ids)
        self.model |= dict(zip(ids, rows, strict=True))

    @rule()
    def reopen(self) -> None:
        self.db = hiernorm.Database.open(self.folder / "db")

    @rule()
    def snapshot(self) -> None:
        self.copies += 1
        copy = self.db.snapshot(self.folder / f"copy{self.copies}")
        assert_equals_model(copy, self.model, self.metric)
        assert copy.digest == self.db.digest
        assert copy.check().ok

    @rule(ids=ids_of_pool, k=st.integers(1, 6))
    def search_among(self, ids: list[int], k: int) -> None:
        allowed = {i: row for i, row in self.model.items() if i in ids}
        right = right_hits(allowed, k, self.metric)
        mask = np.isin(self.db.ids, np.array(ids))
        for where in (ids, mask, lambda found: np.isin(found, np.array(ids))):
            hits = self.db.search(QUERIES, k, where=where)
            assert_same_hits(hits, right)
            assert hits.certificate.exact.all()
            assert hits.certificate.entries == len(allowed)

    @rule(threshold=st.sampled_from([-2.0, 0.0, 0.5, 0.9]))
    def range(self, threshold: float) -> None:
        ids, rows = arrays_of(self.model)
        found = self.db.range(QUERIES, threshold)
        for q, (hit_ids, scores) in zip(QUERIES, found, strict=True):
            right = reference.exhaustive_range(q, rows, ids, threshold, self.metric)
            np.testing.assert_array_equal(hit_ids, right[0])
            assert_same_bits(scores, right[1])

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        if hasattr(self, "db"):
            assert_equals_model(self.db, self.model, self.metric)
            assert_equals_model(self.reader, self.seen, self.metric)

    @rule()
    def verify(self) -> None:
        assert self.db.check().ok
        ids, rows = arrays_of(self.model)
        index = hiernorm.Index(
            D, major=self.db.major, alpha=self.db.alpha, metric=self.metric, engine="exhaustive"
        )
        index.add(rows, ids)
        assert index.digest == self.db.digest


class TestDatabase(DatabaseMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.long
class TestDatabaseForLong(DatabaseMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=500, stateful_step_count=50, derandomize=False)

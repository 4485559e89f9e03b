"""What a writer and a reader of any database do, for the machines that try all sequences of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from database_support import Model, vectors

POOL = [*range(40), 2**32, 2**62]
ids_of_pool = st.lists(st.sampled_from(POOL), unique=True, min_size=1, max_size=14)
seeds = st.integers(0, 2**16)


class WriterAndReader(RuleBasedStateMachine):
    """Rules that need ``db`` and ``reader``, and the models of both: ``model`` and ``seen``."""

    db: Any
    reader: Any
    model: Model
    seen: Model

    @rule(ids=ids_of_pool, seed=seeds)
    def upsert(self, ids: list[int], seed: int) -> None:
        rows = vectors(seed, len(ids))
        self.db.upsert(rows, ids)
        self.model |= dict(zip(ids, rows, strict=True))

    @rule(ids=ids_of_pool)
    def delete(self, ids: list[int]) -> None:
        unknown = [i for i in ids if i not in self.model]
        if unknown:
            with pytest.raises(KeyError, match=f"id {unknown[0]} is not in the database"):
                self.db.delete(ids)
        self.db.delete(ids, ignore_missing=True)
        for i in ids:
            self.model.pop(i, None)

    @rule()
    def compact(self) -> None:
        self.db.compact()
        assert self.db.info()["deleted"] == 0

    @rule()
    def refresh_the_reader(self) -> None:
        newer = self.reader.generation < self.db.generation
        assert self.reader.refresh() == newer
        self.seen = dict(self.model)

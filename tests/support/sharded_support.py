"""What the tests of shards share: actors without Ray, and comparisons with one index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hiernorm
from database_support import ALPHA, MAJOR, QUERIES, D, Model, arrays_of, right_hits
from hiernorm import reference
from hiernorm.distributed import ShardedDatabase
from hiernorm.distributed.actor_pool import ActorReplies
from hiernorm.distributed.server import ShardServer, ShardSpec
from support import assert_same_bits, assert_same_hits


class ActorsInProcess:
    """Shard servers of this process; ``fault`` may raise, or make a shard silent, before a call."""

    def __init__(
        self, ray: Any, specs: list[ShardSpec], in_flight: int, options: Mapping[str, Any]
    ) -> None:
        self.specs = specs
        self.servers = [ShardServer(spec) for spec in specs]
        self.silent: set[int] = set()
        self.fault: Callable[[str, int], None] = lambda method, shard: None

    def __len__(self) -> int:
        return len(self.servers)

    def close(self) -> None:
        """Nothing to end."""

    def restart(self) -> None:
        """As if every actor had died and come back."""
        self.servers = [ShardServer(spec) for spec in self.specs]

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], until: float
    ) -> ActorReplies:
        replies = ActorReplies()
        for shard, given in arguments.items():
            self.fault(method, shard)
            if shard in self.silent:
                replies.missing[shard] = "silent"
                continue
            replies.answers[shard] = getattr(self.servers[shard], method)(*given)
        return replies


class NoRay:
    """Stands in for the ray module: there is no object store."""

    @staticmethod
    def put(value: Any) -> Any:
        return value


@contextmanager
def in_process() -> Iterator[None]:
    """Sharded databases without Ray."""
    with (
        mock.patch("hiernorm.distributed.database_state.ActorPool", ActorsInProcess),
        mock.patch("hiernorm.distributed.database.connect", return_value=NoRay),
    ):
        yield


def create_sharded(
    path: Path, shards: int, kind: str = "hn", metric: str = "ip", **options: Any
) -> ShardedDatabase:
    """An empty sharded database for HN or for plain vectors."""
    split = {"major": MAJOR, "alpha": ALPHA} if kind == "hn" else {}
    return ShardedDatabase.create(path, D, shards=shards, metric=metric, **split, **options)


def assert_equals_index(
    db: ShardedDatabase, model: Model, metric: str = "ip", waves: tuple[int | None, ...] = (None, 1)
) -> None:
    """Entries, vectors, answers and certificates are those of one index over the model."""
    ids, rows = arrays_of(model)
    assert len(db) == len(ids)
    np.testing.assert_array_equal(db.ids, ids)
    np.testing.assert_array_equal(db.reconstruct(ids), rows)
    for k in (1, 5):
        right = right_hits(model, k, metric)
        for wave in waves:
            hits = db.search(QUERIES, k, wave=wave)
            assert_same_hits(hits, right)
            assert hits.certificate.exact.all()
            assert hits.certificate.entries == len(ids)
            assert hits.certificate.missing is None
    found = db.range(QUERIES, 0.25)
    for query, (hit_ids, scores) in zip(QUERIES, found, strict=True):
        expected = reference.exhaustive_range(query, rows, ids, 0.25, metric)
        np.testing.assert_array_equal(hit_ids, expected[0])
        assert_same_bits(scores, expected[1])


def digest_of(model: Model, db: ShardedDatabase) -> str:
    """Of an index with the entries of the model."""
    ids, rows = arrays_of(model)
    settings = db._settings
    index = hiernorm.Index(
        D, major=settings.major, alpha=settings.alpha, metric=settings.metric, engine="exhaustive"
    )
    index.add(rows, ids)
    return index.digest

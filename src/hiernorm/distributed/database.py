"""The sharded database: as :class:`hiernorm.Database`, over many machines."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_count, as_hit_count, as_rows, as_share, as_threshold
from hiernorm.distributed.answers import ShardedHits
from hiernorm.distributed.creation import create_shards
from hiernorm.distributed.database_changes import ShardedChanges
from hiernorm.distributed.database_state import as_seconds
from hiernorm.distributed.fan_out import ShardQuery
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.session import connect
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.settings import Metric
from hiernorm.storage.database import verify_without_answer
from hiernorm.verification import Verification, verify_hits


class ShardedDatabase(ShardedChanges):
    """Entries (id, vector) in many shards, each in a Ray actor: one database to the caller.

    Answers have the ids and the score bits of :meth:`hiernorm.Index.search` on the same entries,
    whatever the number of shards. A change is one generation of the whole: durable when its method
    returns, applied as a whole or not at all. One process writes at a time, any number read. A
    reader stays on the generation it opened until :meth:`refresh`. If an actor is restarted and the
    files of that generation are gone, all shards move on to the newest one together.

    Use :meth:`create` or :meth:`open`, and :meth:`close` (or ``with``) to end the actors. Safe to
    use from many threads.

    Examples
    --------
    >>> from hiernorm.distributed import ShardedDatabase
    >>> db = ShardedDatabase.create("points.hn", dim=3, shards=2)     # doctest: +SKIP
    >>> db.add([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], ids=[10, 20, 30])     # doctest: +SKIP
    3
    >>> db.search([0, 1, 0], k=2).ids.tolist()     # doctest: +SKIP
    [[20, 30]]
    """

    _opened_with: Mapping[str, Any]

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dim: int,
        *,
        shards: int,
        major: int | None = None,
        alpha: float | str | None = None,
        metric: Metric = "ip",
        string_keys: bool = False,
        **options: Any,
    ) -> ShardedDatabase:
        """Make an empty database in a new folder that all nodes see.

        Parameters
        ----------
        path
            Folder to make (or ``file://`` URI); it must not exist, or be empty.
        dim, major, alpha, metric, string_keys
            As for :meth:`hiernorm.Database.create`.
        shards
            The number of shards; it never changes.
        options
            As for :meth:`open`.
        """
        share = None if alpha is None else as_share("alpha", alpha)
        create_shards(Location(path).folder, dim, shards, major, share, metric, string_keys)
        return cls.open(path, **options)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        address: str | None = None,
        local: str | os.PathLike[str] | None = None,
        threads: int = 1,
        in_flight: int = 4,
        deadline: float = 60.0,
        change_deadline: float = 3600.0,
        lock_timeout: float = 0.0,
        actor_options: Mapping[str, Any] | None = None,
    ) -> ShardedDatabase:
        """Open a database: its manifest is read here, files are mapped by the actors.

        Parameters
        ----------
        path
            A folder that all nodes see, or a URI that pyarrow reads (``s3://...``; searched only).
        address
            The address of the Ray cluster. By default the one this process is connected to, then
            RAY_ADDRESS, then a local Ray that is started for this process.
        local
            A folder on every node's own disk: actors copy their shard there and map the copy.
        threads
            Threads of every actor.
        in_flight
            Maximum number of concurrent calls to a shard; further calls wait.
        deadline
            Seconds after which a query names the shards that did not answer.
        change_deadline
            The same for changes, :meth:`verify`, :meth:`check` and :meth:`compact`: for the whole
            of a change, from the look-up of ids to the last shard that publishes it.
        lock_timeout
            Seconds that a change waits for another writer before it gives up.
        actor_options
            Options of the Ray actors, such as ``{"num_cpus": 4}``. By default actors reserve no
            resources and are spread over the nodes.

        Raises
        ------
        hiernorm.DatabaseError
            If there is no database, or its manifest is damaged. Damage of a shard is reported by
            the first query.
        """
        options: dict[str, Any] = {
            "local": local,
            "threads": threads,
            "in_flight": in_flight,
            "deadline": deadline,
            "change_deadline": change_deadline,
            "lock_timeout": lock_timeout,
            "actor_options": actor_options or {},
        }
        opened = cls(Location(path), connect(address), **options)
        opened._opened_with = {"address": address, **options}
        return opened

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled database is its path: another process opens the newest generation."""
        return _open, (type(self), self.path, self._opened_with)

    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        *,
        where: Where | None = None,
        beta: float | None = None,
        deadline: float | None = None,
        allow_partial: bool = False,
        batch_size: int | None = None,
        wave: int | None = None,
    ) -> ShardedHits:
        """The k best entries of each query, best first.

        Parameters
        ----------
        q, k, beta
            As for :meth:`hiernorm.Database.search`.
        where
            Ids, a mask over :attr:`ids`, a function of an array of ids (which is sent to the
            actors), or a condition on the payload, as for :meth:`hiernorm.Database.select`.
        deadline
            Seconds, for all queries of this call; by default that of the database.
        allow_partial
            Whether shards that did not answer in time may be left out: the certificate then says
            ``exact=False`` and ``missing``. By default that is an error.
        batch_size
            How many queries are sent to a shard in one call.
        wave
            How many shards search at the same time; the k-th score so far prunes the search of the
            next ones. By default up to 4 shards search at once; of more, a quarter searches first,
            then the rest. The answers do not depend on it.

        Raises
        ------
        hiernorm.distributed.ShardsMissingError
            Naming the shards that did not answer in time.
        """
        self._settings.checked_beta(beta)
        queries = self._checked(q)
        count = as_hit_count(k, len(queries), len(self))
        size = None if batch_size is None else as_count("batch_size", batch_size)
        group = None if wave is None else as_count("wave", wave)
        until, timeout = self._until(deadline)

        def search(manifest: ShardsManifest) -> ShardedHits:
            shard_query = ShardQuery(
                manifest, where, until, timeout, allow_partial, count, beta, wave=group
            )
            return self._reader.search(shard_query, queries, size)

        return self._reader.read(search, until)

    def range(
        self,
        q: npt.ArrayLike,
        threshold: float,
        *,
        where: Where | None = None,
        deadline: float | None = None,
        allow_partial: bool = False,
    ) -> RangeHits:
        """Every entry with score >= threshold, best first; the rest as for :meth:`search`."""
        queries = self._checked(q)
        least = as_threshold(threshold)
        until, timeout = self._until(deadline)

        def search(manifest: ShardsManifest) -> RangeHits:
            shard_query = ShardQuery(
                manifest, where, until, timeout, allow_partial, threshold=least
            )
            return self._reader.range(shard_query, queries)

        return self._reader.read(search, until)

    def reconstruct(self, ids: npt.ArrayLike | Sequence[str]) -> Float32Array:
        """The vectors of ``ids``: ``(n, d)`` float32, as they were added; KeyError without one."""

        def rows(manifest: ShardsManifest) -> Float32Array:
            wanted = self._payload(manifest).ids_of(ids)
            return self._reader.rows(manifest, wanted, self._deadline)

        return self._read(rows)

    def verify(
        self,
        q: npt.ArrayLike | None = None,
        hits: Hits | None = None,
        *,
        where: Where | None = None,
        deadline: float | None = None,
    ) -> Verification:
        """Compare an answer with exhaustive search: as :meth:`hiernorm.Index.verify`."""
        if q is None or hits is None:
            return verify_without_answer(self)
        queries, k = self._checked(q), hits.ids.shape[1]
        until, timeout = self._until(self._change_deadline if deadline is None else deadline)

        def search(manifest: ShardsManifest) -> tuple[Int64Array, Float64Array, int]:
            shard_query = ShardQuery(manifest, where, until, timeout, False, k)
            return self._reader.search_exhaustively(shard_query, queries)

        exhaustive = self._reader.read(search, until)
        return verify_hits(hits, queries, exhaustive, self.metric, self.reconstruct)

    def check(self) -> Verification:
        """Read all files on every node and list what is damaged."""
        return self._read(lambda manifest: self._reader.check(manifest, self._change_deadline))

    def _checked(self, q: npt.ArrayLike) -> Float32Array:
        queries = as_rows("queries", q, self.dim)
        self._like.search(queries, 1, -1.0, 1, 1)  # nothing to find, but NaN is refused
        return queries

    def _until(self, deadline: float | None) -> tuple[float, float]:
        seconds = self._deadline if deadline is None else as_seconds("deadline", deadline)
        return time.monotonic() + seconds, seconds


def _open(kind: type[ShardedDatabase], path: str, options: Mapping[str, Any]) -> ShardedDatabase:
    """What a pickled database becomes."""
    return kind.open(path, **options)

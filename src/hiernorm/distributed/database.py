"""The sharded database: as :class:`hiernorm.Database`, over many machines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy.typing as npt

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_count, as_hit_count, as_ids, as_rows, as_share, as_threshold, is_id
from hiernorm.distributed.actor_pool import ActorPool
from hiernorm.distributed.answers import ShardedHits
from hiernorm.distributed.creation import create_shards
from hiernorm.distributed.fan_out import QueryFanOut, ShardQuery
from hiernorm.distributed.location import Location
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.payload import ShardedPayload
from hiernorm.distributed.reader import ShardedReader
from hiernorm.distributed.server import ShardSpec
from hiernorm.distributed.session import connect
from hiernorm.distributed.writer import ShardedWriter
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.payload.answers import holds_key, keys_of, table_of, visible_columns
from hiernorm.progress import ProgressCallback
from hiernorm.settings import Metric
from hiernorm.storage.database import verify_without_answer
from hiernorm.verification import Verification, verify_hits

SHARD_LOCK_SECONDS = 60.0
"""How long an actor waits for a dying one that still holds the lock of its shard."""

T = TypeVar("T")


class ShardedDatabase:
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

    def __init__(
        self,
        location: Location,
        ray: Any,
        *,
        local: str | os.PathLike[str] | None,
        threads: int,
        in_flight: int,
        deadline: float,
        change_deadline: float,
        lock_timeout: float,
        actor_options: Mapping[str, Any],
    ) -> None:
        manifest = location.read_manifest()
        settings = manifest.parameters.settings(as_count("threads", threads))
        if location.is_remote and local is None:
            raise ValueError(
                f"{location.name} is not a folder: give local=, for copies on the nodes"
            )
        copies = None if local is None else os.fspath(local)
        specs = [
            ShardSpec(location.name, shard, manifest.shards, copies, threads, SHARD_LOCK_SECONDS)
            for shard in range(manifest.shards)
        ]
        self._location = location
        self._settings = settings
        self._deadline = _positive("deadline", deadline)
        self._change_deadline = _positive("change_deadline", change_deadline)
        self._lock_timeout = lock_timeout
        self._like = settings.make_core()
        self._actor_pool = ActorPool(ray, specs, as_count("in_flight", in_flight), actor_options)
        self._reader = ShardedReader(
            location, self._actor_pool, QueryFanOut(ray, self._actor_pool, in_flight), settings
        )
        self._writer = ShardedWriter(location, self._actor_pool, self._like, self._change_deadline)
        self._change_lock = threading.Lock()

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
        return cls(
            Location(path),
            connect(address),
            local=local,
            threads=threads,
            in_flight=in_flight,
            deadline=deadline,
            change_deadline=change_deadline,
            lock_timeout=lock_timeout,
            actor_options=actor_options or {},
        )

    def __enter__(self) -> ShardedDatabase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the actors; the database stays as it is."""
        self._actor_pool.close()

    @property
    def path(self) -> str:
        """The folder or URI."""
        return self._location.name

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K, as the database was created; None: each segment chooses it from its entries."""
        return self._settings.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    def shards(self) -> int:
        """The number of shards."""
        return self._reader.manifest.shards

    @property
    def generation(self) -> int:
        """The number of changes that led to what this reader sees."""
        return self._reader.manifest.generation

    def __len__(self) -> int:
        return self._reader.manifest.entries

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._reader.manifest.parameters.string_keys

    @property
    def keys(self) -> list[str]:
        """The string keys of all entries, in the order of :attr:`ids`."""
        ids = self.ids
        return self._read(lambda manifest: keys_of(self._payload(manifest), ids).tolist())

    @property
    def columns(self) -> dict[str, str]:
        """The payload columns, as :attr:`hiernorm.Database.columns`."""
        return visible_columns(self._payload(self._reader.manifest))

    def _payload(self, manifest: ShardsManifest) -> ShardedPayload:
        return self._reader.payload(manifest, self._deadline)

    def __contains__(self, id: object) -> bool:
        if isinstance(id, str):
            return self._read(lambda manifest: holds_key(self._payload(manifest), id))
        if not is_id(id):
            return False
        wanted = as_ids(id)
        return bool(self._read(lambda manifest: self._writer.holds(manifest, wanted))[0])

    def __repr__(self) -> str:
        return (
            f"ShardedDatabase({self.path!r}, dim={self.dim}, metric={self.metric!r}, "
            f"shards={self.shards}, entries={len(self):,}, generation={self.generation})"
        )

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return self._read(lambda manifest: self._reader.ids(manifest, self._deadline))

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and live entries; that of an index with the same entries.

        Reads every entry of every shard: hours at large sizes.
        """
        return self._read(self._reader.digest)

    def info(self) -> dict[str, Any]:
        """The parameters of the database and the sizes of its shards, ready for JSON."""
        return self._read(lambda manifest: self._reader.info(manifest, self._deadline))

    # Changes: each is one generation.

    def add(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors; all of them, or none: as :meth:`hiernorm.Database.add`.

        Files and iterators larger than memory go through files in the database's folder;
        :func:`hiernorm.distributed.build` is the way to make a large database.
        """
        return self._insert(x, ids, payload, progress, replacing=False)

    def upsert(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors, replacing entries with the same ids; parameters as for :meth:`add`."""
        return self._insert(x, ids, payload, progress, replacing=True)

    def _insert(
        self, x: Any, ids: Any, payload: Any, progress: ProgressCallback | None, *, replacing: bool
    ) -> int:
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            count, changed = self._writer.insert(
                base, x, ids, progress, replacing=replacing, payload=payload
            )
            self._reader.move_on(base, changed)
            return count

    def delete(self, ids: npt.ArrayLike | Sequence[str], *, ignore_missing: bool = False) -> None:
        """Delete entries; KeyError names the first id that is not there, unless ignored."""
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            wanted = self._payload(base).ids_of(ids, ignore_missing=ignore_missing)
            self._reader.move_on(base, self._writer.delete(base, wanted, ignore_missing))

    def compact(self) -> None:
        """Rewrite the live entries of every shard in as few segments as possible."""
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            self._reader.move_on(base, self._writer.compact(base))

    # Reading.

    def refresh(self) -> bool:
        """Move on to the newest generation; returns whether there was a newer one."""
        return self._reader.refresh()

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

    def payload(
        self,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """The payload of ``ids`` as a ``pyarrow.Table``: as :meth:`hiernorm.Database.payload`."""

        def table(manifest: ShardsManifest) -> Any:
            payload = self._payload(manifest)
            if ids is None:
                wanted = self._reader.ids(manifest, self._deadline)
            else:
                wanted = payload.ids_of(ids)
            return table_of(payload, wanted, columns)

        return self._read(table)

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
        seconds = self._deadline if deadline is None else _positive("deadline", deadline)
        return time.monotonic() + seconds, seconds

    def _read(self, act: Callable[[ShardsManifest], T]) -> T:
        return self._reader.read(act, time.monotonic() + self._deadline)


def _positive(name: str, seconds: float) -> float:
    if not seconds > 0:
        raise ValueError(f"{name} must be positive seconds, got {seconds}")
    return float(seconds)

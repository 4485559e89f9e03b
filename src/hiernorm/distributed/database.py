"""The sharded database: as :class:`hiernorm.Database`, over many machines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_count, as_ids, as_rows
from hiernorm.distributed.actor_pool import Crew
from hiernorm.distributed.answers import ShardedHits
from hiernorm.distributed.creation import create_shards
from hiernorm.distributed.fan_out import Asker, Terms
from hiernorm.distributed.location import Place
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.reader import Reader
from hiernorm.distributed.server import ShardSpec
from hiernorm.distributed.session import connect
from hiernorm.distributed.writer import Changes
from hiernorm.hits import RangeHits, Verification
from hiernorm.index import MOST_HITS
from hiernorm.storage.importer import Report
from hiernorm.storage.selection import Where

SHARD_LOCK_SECONDS = 60.0
"""That an actor waits for one that is about to die and still holds the lock of its shard."""

T = TypeVar("T")


class ShardedDatabase:
    """Entries (id, vector) in many shards, each in a Ray actor: one database to the caller.

    Answers have the ids and the score bits of :meth:`hiernorm.Index.search` on the same entries,
    whatever the number of shards. A change is one generation of the whole: durable when its method
    returns, there as a whole or not at all. One process changes it at a time, any number read;
    each stays on the generation it opened until :meth:`refresh` (or until an actor that died finds
    newer files only: then the whole moves on, never a part of it).

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
        place: Place,
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
        manifest = place.read_shards()
        settings = manifest.parameters.settings(as_count("threads", threads))
        if place.is_remote and local is None:
            raise ValueError(f"{place.name} is not a folder: give local=, for copies on the nodes")
        copies = None if local is None else os.fspath(local)
        specs = [
            ShardSpec(place.name, shard, manifest.shards, copies, threads, SHARD_LOCK_SECONDS)
            for shard in range(manifest.shards)
        ]
        self._place = place
        self._settings = settings
        self._deadline = _positive("deadline", deadline)
        self._change_deadline = _positive("change_deadline", change_deadline)
        self._lock_timeout = lock_timeout
        self._like = _core.Index(
            settings.dim, settings.metric, "cascade", float(settings.alpha or 0.0), settings.cells
        )
        self._crew = Crew(ray, specs, as_count("in_flight", in_flight), actor_options)
        self._reader = Reader(place, self._crew, Asker(ray, self._crew, in_flight), settings)
        self._changes = Changes(place, self._crew, self._like, self._change_deadline)
        self._turn = threading.Lock()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dim: int,
        *,
        shards: int,
        major: int | None = None,
        alpha: float | None = None,
        metric: str = "ip",
        **options: Any,
    ) -> ShardedDatabase:
        """Make an empty database in a new folder that all nodes see.

        Parameters
        ----------
        path
            Folder to make (or ``file://`` URI); it must not exist, or be empty.
        dim, major, alpha, metric
            As for :meth:`hiernorm.Database.create`.
        shards
            How many; it never changes.
        options
            As for :meth:`open`.
        """
        create_shards(Place(path).folder, dim, shards, major, alpha, metric)
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
            Of the Ray cluster; by default the one this process is connected to, RAY_ADDRESS, or a
            local Ray started on the fly.
        local
            A folder on every node's own disk: actors copy their shard there and map the copy.
        threads
            Of every actor.
        in_flight
            The most calls that are on their way to a shard at a time; others wait here.
        deadline
            Seconds after which a query names the shards that did not answer.
        change_deadline
            The same for changes, :meth:`verify` and :meth:`compact`.
        lock_timeout
            Seconds that a change waits for another writer before it gives up.
        actor_options
            Of Ray, such as ``{"num_cpus": 4}``; actors need no resources by default and are
            spread over the nodes.

        Raises
        ------
        hiernorm.DatabaseError
            If there is none, or its manifest is damaged. Damage of a shard is an error of the
            first query.
        """
        return cls(
            Place(path),
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
        self._crew.close()

    @property
    def path(self) -> str:
        """The folder or URI."""
        return self._place.name

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def metric(self) -> str:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    def shards(self) -> int:
        """How many."""
        return self._reader.manifest.shards

    @property
    def generation(self) -> int:
        """How many changes led to what this reader sees."""
        return self._reader.manifest.generation

    def __len__(self) -> int:
        return self._reader.manifest.entries

    def __repr__(self) -> str:
        return (
            f"ShardedDatabase({self.path!r}, dim={self.dim}, metric={self.metric!r}, "
            f"shards={self.shards}, entries={len(self):,}, generation={self.generation})"
        )

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return self._read(lambda view: self._reader.ids(view, self._deadline))

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and live entries; that of an index with the same entries.

        Reads every entry of every shard: hours at large sizes.
        """
        return self._read(self._reader.digest)

    def info(self) -> dict[str, Any]:
        """What there is, in numbers: for people and for JSON."""

        def gather(view: ShardsManifest) -> dict[str, Any]:
            found = self._reader.call_all(view, "info", self._deadline)
            return {
                "path": self.path,
                "dim": self.dim,
                "major": self._settings.major,
                "alpha": self._settings.alpha,
                "metric": self.metric,
                "generation": view.generation,
                "shards": view.shards,
                "entries": view.entries,
                "smallest_shard": min(pin.entries for pin in view.pins),
                "largest_shard": max(pin.entries for pin in view.pins),
                **{
                    name: sum(info[name] for info in found.values())
                    for name in ("deleted", "segments", "bytes")
                },
            }

        return self._read(gather)

    # Changes: each is one generation.

    def add(
        self, x: Any, ids: npt.ArrayLike | None = None, *, progress: Report | None = None
    ) -> int:
        """Add vectors; all of them, or none: as :meth:`hiernorm.Database.add`.

        Files and iterators larger than memory go through files in the database's folder;
        :func:`hiernorm.distributed.build` is the way to make a large database.
        """
        return self._insert(x, ids, progress, replacing=False)

    def upsert(
        self, x: Any, ids: npt.ArrayLike | None = None, *, progress: Report | None = None
    ) -> int:
        """Add vectors, replacing those whose ids are there already; as :meth:`add` otherwise."""
        return self._insert(x, ids, progress, replacing=True)

    def _insert(
        self, x: Any, ids: npt.ArrayLike | None, progress: Report | None, *, replacing: bool
    ) -> int:
        with self._turn, self._changes.begin(self._lock_timeout) as base:
            count, self._reader.manifest = self._changes.insert(
                base, x, ids, progress, replacing=replacing
            )
            return count

    def delete(self, ids: npt.ArrayLike, *, ignore_missing: bool = False) -> None:
        """Delete entries; KeyError names the first id that is not there, unless ignored."""
        with self._turn, self._changes.begin(self._lock_timeout) as base:
            self._reader.manifest = self._changes.delete(base, as_ids(ids), ignore_missing)

    def compact(self) -> None:
        """Write the live entries of every shard anew, in as few segments as possible."""
        with self._turn, self._changes.begin(self._lock_timeout) as base:
            self._reader.manifest = self._changes.compact(base)

    # Reading.

    def refresh(self) -> bool:
        """Move on to the newest generation; whether there was a newer one."""
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
            Ids, a mask over :attr:`ids`, or a function of an array of ids (which is sent to the
            actors).
        deadline
            Seconds, for all queries of this call; by default that of the database.
        allow_partial
            Whether shards that did not answer in time may be left out: the certificate then says
            ``exact=False`` and ``missing``. By default that is an error.
        batch_size
            How many queries travel together.
        wave
            How many shards are asked at a time; the k-th score so far prunes the search of the
            next ones. By default all of up to 4 shards; of more, a quarter, then the rest. The
            answers do not depend on it.

        Raises
        ------
        hiernorm.distributed.ShardsMissingError
            Naming the shards that did not answer in time.
        """
        count = as_count("k", k, most=MOST_HITS)
        self._settings.checked_beta(beta)
        queries = self._checked(q)
        size = None if batch_size is None else as_count("batch_size", batch_size)
        group = None if wave is None else as_count("wave", wave)
        until, seconds = self._until(deadline)

        def ask(view: ShardsManifest) -> ShardedHits:
            terms = Terms(view, where, until, seconds, allow_partial, count, beta, 0.0, group)
            return self._reader.search(terms, queries, size)

        return self._reader.read(ask, until)

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
        if not np.isfinite(threshold):
            raise ValueError(f"threshold must be finite, got {threshold}")
        until, seconds = self._until(deadline)

        def ask(view: ShardsManifest) -> RangeHits:
            terms = Terms(view, where, until, seconds, allow_partial, threshold=float(threshold))
            return self._reader.range(terms, queries)

        return self._reader.read(ask, until)

    def reconstruct(self, ids: npt.ArrayLike) -> Float32Array:
        """The vectors of ``ids``: ``(n, d)`` float32, as they were added; KeyError without one."""
        wanted = as_ids(ids)
        return self._read(lambda view: self._reader.rows(view, wanted, self._deadline))

    def verify(self) -> Verification:
        """Read everything on every node and say what is not as it was written."""

        def gather(view: ShardsManifest) -> Verification:
            found = self._reader.call_all(view, "verify", self._change_deadline)
            lines = [f"shard {s}: {line}" for s in sorted(found) for line in found[s]]
            return Verification(lines)

        return self._read(gather)

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

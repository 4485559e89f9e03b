"""A change of many shards: all of it, or nothing.

Under the lock of the whole: every shard concerned prepares its next generation; then the manifest
of the whole is replaced, which is the change; then the shards publish it. Whatever dies before the
manifest is replaced has changed nothing; whatever dies after it leaves work that the next change
does first, and that readers do not depend on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import BoolArray, Float32Array, Int64Array
from hiernorm.arrays import as_ids, as_rows
from hiernorm.distributed.actor_pool import Crew
from hiernorm.distributed.errors import ShardsMissingError
from hiernorm.distributed.location import Place
from hiernorm.distributed.manifest import ShardsManifest
from hiernorm.distributed.placement import split_by_shard
from hiernorm.distributed.server import Change
from hiernorm.distributed.staging import STAGING, write_parts
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.importer import MOST_ID, Report
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.sources import as_array, count_rows, is_source, read_pieces

PUBLISH_SECONDS = 10.0
"""That a change waits for shards to publish it: it has happened, they may do so later."""


class Changes:
    """Makes changes, one at a time."""

    def __init__(self, place: Place, crew: Crew, like: _core.Index, deadline: float) -> None:
        self._place = place
        self._crew = crew
        self._like = like
        self._deadline = deadline

    @contextmanager
    def begin(self, lock_timeout: float) -> Iterator[ShardsManifest]:
        """The newest generation, while nobody else changes it."""
        with WriterLock(self._place.folder, lock_timeout):
            self._clear()
            try:
                yield self._place.read_shards()
            finally:
                self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._place.folder / STAGING, ignore_errors=True)

    def insert(
        self,
        base: ShardsManifest,
        x: Any,
        ids: npt.ArrayLike | None,
        report: Report | None,
        *,
        replacing: bool,
    ) -> tuple[int, ShardsManifest]:
        """Add or replace entries; how many, and the generation it leads to."""
        kind = "upsert" if replacing else "insert"
        x = as_array(x)
        if not is_source(x):
            rows = as_rows("vectors", x, base.parameters.dim)
            checked, next_id = self._checked(base, rows, ids, base.next_id, kind)
            changes = {
                shard: Change(kind, checked[at], rows[at])
                for shard, at in split_by_shard(checked, base.shards).items()
            }
            changed = self.apply(base, changes, next_id)
            if report is not None:
                report(len(rows), len(rows))
            return len(rows), changed
        return self._insert_pieces(base, x, None if ids is None else as_ids(ids), report, kind)

    def _insert_pieces(
        self,
        base: ShardsManifest,
        source: Any,
        given: Int64Array | None,
        report: Report | None,
        kind: str,
    ) -> tuple[int, ShardsManifest]:
        """Sources larger than memory go by files."""
        folder = self._place.folder / STAGING
        names: dict[int, list[str]] = {}
        total, taken, next_id = count_rows(source), 0, base.next_id
        for x, piece_ids in read_pieces(source):
            if given is not None:
                piece_ids = given[taken : taken + len(x)]
            rows = as_rows("vectors", x, base.parameters.dim)
            checked, next_id = self._checked(base, rows, piece_ids, next_id, kind)
            for shard, (name, _) in write_parts(folder, checked, rows, base.shards).items():
                names.setdefault(shard, []).append(name)
            taken += len(rows)
            if report is not None:
                report(taken, total)
        if given is not None and len(given) != taken:
            raise ValueError(f"{taken} vectors need {taken} ids, got {len(given)}")
        changes = {
            shard: Change(kind, folder=str(folder), names=tuple(parts))
            for shard, parts in names.items()
        }
        return taken, self.apply(base, changes, next_id)

    def _checked(
        self,
        base: ShardsManifest,
        rows: Float32Array,
        given: npt.ArrayLike | None,
        next_id: int,
        kind: str,
    ) -> tuple[Int64Array, int]:
        """Ids of acceptable rows, and the one that follows; as one database would say it."""
        if given is None:
            if next_id + len(rows) > MOST_ID:
                raise ValueError("the ids that follow the largest do not fit int64: give ids")
            ids = np.arange(next_id, next_id + len(rows), dtype=np.int64)
        else:
            ids = as_ids(given, len(rows))
        self._like.check(rows, np.arange(len(rows)))
        in_order = np.sort(ids)
        again = in_order[1:][in_order[1:] == in_order[:-1]]
        if len(again):
            raise ValueError(f"id {again[0]} is given twice")
        if kind == "insert" and given is not None:
            found = self.holds(base, ids)
            if found.any():
                raise ValueError(
                    f"id {ids[int(np.argmax(found))]} is in the database already: "
                    "upsert replaces it"
                )
        last = min(int(ids.max()) + 1, MOST_ID) if len(ids) else next_id
        return ids, max(next_id, last)

    def holds(self, base: ShardsManifest, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are in the database."""
        places = split_by_shard(ids, base.shards)
        asked = {shard: (base.pins[shard], ids[at]) for shard, at in places.items()}
        found = np.zeros(len(ids), np.bool_)
        for shard, answer in self.call(base, "holds", asked).items():
            found[places[shard]] = answer
        return found

    def delete(self, base: ShardsManifest, ids: Int64Array, ignore_missing: bool) -> ShardsManifest:
        """Delete entries."""
        found = self.holds(base, ids)
        if not found.all() and not ignore_missing:
            raise KeyError(f"id {ids[int(np.argmin(found))]} is not in the database")
        ids = ids[found]
        places = split_by_shard(ids, base.shards)
        changes = {shard: Change("delete", ids[at]) for shard, at in places.items()}
        return self.apply(base, changes, base.next_id)

    def compact(self, base: ShardsManifest) -> ShardsManifest:
        """Write all live entries anew."""
        changes = {shard: Change("compact") for shard in range(base.shards)}
        return self.apply(base, changes, base.next_id)

    def apply(
        self, base: ShardsManifest, changes: Mapping[int, Change], next_id: int
    ) -> ShardsManifest:
        """Make all changes; the generation they lead to."""
        asked = {shard: (base.pins[shard], change) for shard, change in changes.items()}
        try:
            pins = list(base.pins)
            for shard, pin in self.call(base, "prepare", asked).items():
                pins[shard] = pin
            changed = replace(base, pins=tuple(pins))
            if changed == base:
                return base
            changed = replace(changed, generation=base.generation + 1, next_id=next_id)
            changed.write(self._place.folder)
        except BaseException:
            with suppress(DatabaseError, OSError):
                # The manifest tells what holds: it may have been replaced before the error.
                self._settle(self._place.read_shards(), list(changes))
            raise
        with suppress(DatabaseError, OSError):
            self._settle(changed, list(changes))
        return changed

    def _settle(self, manifest: ShardsManifest, shards: list[int]) -> None:
        until = time.monotonic() + PUBLISH_SECONDS
        self._crew.call("settle", {shard: (manifest.pins[shard],) for shard in shards}, until)

    def call(
        self, base: ShardsManifest, method: str, asked: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        """Call a method of shards that must all answer."""
        replies = self._crew.call(method, asked, time.monotonic() + self._deadline)
        if replies.missing:
            raise ShardsMissingError(replies.missing, base.shards, self._deadline)
        return replies.answers

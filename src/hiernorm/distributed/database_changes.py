"""Changes of a sharded database: each is one generation of all shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from hiernorm.distributed.database_state import ShardedState
from hiernorm.progress import ProgressCallback


class ShardedChanges(ShardedState):
    """The part of :class:`hiernorm.distributed.ShardedDatabase` that changes entries."""

    def _insert(
        self, x: Any, ids: Any, payload: Any, progress: ProgressCallback | None, *, replace: bool
    ) -> int:
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            count, changed = self._writer.insert(
                base, x, ids, progress, replacing=replace, payload=payload
            )
            self._reader.move_on(base, changed)
            return count

    def delete(self, ids: npt.ArrayLike | Sequence[str], *, ignore_missing: bool = False) -> None:
        """Delete entries; KeyError names the first id that is not there, unless ignored."""
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            self._reader.move_on(base, self._writer.delete(base, ids, ignore_missing))

    def compact(self) -> None:
        """Rewrite the live entries of every shard in as few segments as possible."""
        with self._change_lock, self._writer.begin(self._lock_timeout) as base:
            self._reader.move_on(base, self._writer.compact(base))

    def refresh(self) -> bool:
        """Move on to the newest generation; returns whether there was a newer one."""
        return self._reader.refresh()

"""Changes of an index: entries that are added, replaced and deleted, and the fit that follows them.

A change is made under the write lock and is visible as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm._deprecation import renamed_attribute
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_new_ids, following_ids, next_id_after
from hiernorm.fitting import LEAST_PLANNED, SETTLED, choose_encoding, fill, is_due, plan_encoding
from hiernorm.index_state import IndexState
from hiernorm.payload.keys import as_new_keys, ids_of_keys
from hiernorm.payload.memory import MemoryPayload
from hiernorm.planning import plan_flat
from hiernorm.progress import ProgressCallback
from hiernorm.storage.sources import read_vectors

Changed = TypeVar("Changed", bound="IndexChanges")


class IndexChanges(IndexState):
    """The part of :class:`hiernorm.Index` that changes entries."""

    def _insert(
        self, x: Any, ids: Any, payload: Any, progress: ProgressCallback | None, *, replace: bool
    ) -> int:
        rows, found, table = read_vectors(x, self._settings.dim, payload)
        wanted = found if ids is None else ids
        with self._write_lock:
            string_keys = self._payload.string_keys
            keys = as_new_keys(wanted, len(rows), "index") if string_keys else None
            if keys is not None:
                given = ids_of_keys(keys)
            elif wanted is None:
                given = following_ids(self._next_id, len(rows))
            else:
                given = as_new_ids(wanted, len(rows))
            if len(rows) == 0:
                return 0
            # Published before the entries: a search that finds them finds their payload.
            before = self._payload
            self._payload = before.inserted(given, table, keys, self._core.ids(), replace)
            try:
                self._insert_rows(given, rows, progress, replace)
            except BaseException:
                self._payload = before
                raise
            return len(rows)

    def _insert_rows(
        self,
        given: Int64Array,
        rows: Float32Array,
        progress: ProgressCallback | None,
        replace: bool,
    ) -> None:
        with self._write_lock:
            core = self._core
            if core.attached:  # the entries of a file never change
                core = self._make_like_core()
                fill(core, *self._entries())
            fresh = self._settings.needs_fit and core.encoding() is None and len(core) == 0
            if fresh or replace:  # before anything is computed from them
                self._settings.make_core().check(rows, given)
            if fresh:
                core = self._make_fitted_core(rows)
            removed = core.removed
            fill(core, given, rows, replace=replace, progress=progress)
            if fresh:
                self._plan(core, rows)
                self._fitted_on = len(rows)
            self._core = core
            self._removals += core.removed != removed
            self._next_id = next_id_after(self._next_id, given)
            self._tidy_up()

    def delete(self, ids: npt.ArrayLike | Sequence[str], *, ignore_missing: bool = False) -> None:
        """Delete entries, all at once; ids that come without are never given out again.

        Their memory is used again when half of the entries are deleted, or by :meth:`optimize`.

        Raises
        ------
        KeyError
            Naming the first id that is not in the index, unless ``ignore_missing``; nothing is
            deleted.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0, 1], [1, 1]])
        3
        >>> index.delete([1])
        >>> len(index), 1 in index, index.ids.tolist()
        (2, False, [0, 2])
        """
        with self._write_lock:
            wanted = self._payload.ids_of(ids, ignore_missing=ignore_missing)
            found = self._core.find(wanted)
            if not found.all() and not ignore_missing:
                raise KeyError(f"id {wanted[int(np.argmin(found))]} is not in the index")
            self._removals += self._core.remove(wanted) > 0
            self._payload = self._payload.removed(wanted)
            self._tidy_up()

    def _tidy_up(self) -> None:
        """After a change: fit again what has outgrown its fit, forget what was deleted."""
        core = self._core
        if len(core) == 0:
            self._core, self._fitted_on = self._settings.make_core(), 0
            return
        ungrouped = core.ungrouped if self._settings.groups else 0
        due = self._settings.needs_fit and is_due(self._fitted_on, len(core), ungrouped)
        if due or core.removed > max(SETTLED, len(core)):
            self.optimize()

    def _make_fitted_core(self, rows: Float32Array) -> _core.Index:
        """An empty native index for ``rows``: with an encoding, or flat where none would help."""
        settings = self._settings
        if settings.plans:
            encoding = plan_encoding(rows, settings.metric, cells=settings.groups)
        else:
            encoding = choose_encoding(
                rows,
                settings.major,
                rotate=settings.rotates,
                metric=settings.metric,
                cells=settings.groups,
            )
        if encoding is None:
            return settings.make_core("flat")
        core = settings.make_core()
        core.set_encoding(encoding)
        return core

    def _make_like_core(self) -> _core.Index:
        """An empty native index with the engine and the encoding of this one."""
        encoding = self._core.encoding()
        is_flat = self._settings.needs_fit and encoding is None
        core = self._settings.make_core("flat" if is_flat else None)
        if encoding is not None:
            core.set_encoding(encoding)
            core.plan_flat(self._core.flat_plan)
        return core

    def _plan(self, core: _core.Index, rows: Float32Array) -> None:
        """Choose the requests that a native index with codes, which holds ``rows``, scans flat."""
        coded = self._settings.plans and core.encoding() is not None
        if coded and len(rows) >= LEAST_PLANNED:
            core.plan_flat(plan_flat(core, rows))

    def optimize(self) -> None:
        """Fit the encoding again, on all entries: rotation, steps of the codes, cells.

        Entries that were added a few at a time are in no cell until then, and deleted ones keep
        their memory. The index calls this method automatically when they outnumber the others.

        Answers never change, only speed. It needs the memory of a second index while it runs;
        searches continue meanwhile.
        """
        with self._write_lock:
            if len(self._core) == 0 or not (self._settings.needs_fit or self._core.removed):
                return
            core = self._settings.make_core()
            ids, rows = self._entries()
            if self._settings.needs_fit:
                core = self._make_fitted_core(rows)
            fill(core, ids, rows)
            self._plan(core, rows)
            self._core, self._fitted_on = core, len(core)

    def _sibling(self: Changed) -> Changed:
        """An empty index with the same parameters and the same encoding, if there is one.

        This saves the fitting for entries of the same kind; answers never depend on it.
        """
        other = type(self).__new__(type(self))
        other._settings = self._settings
        other._payload = MemoryPayload(self._payload.string_keys)
        other._prepare()
        if self._core.encoding() is not None:
            other._core = self._make_like_core()
            other._fitted_on = self._fitted_on
        return other

    sibling = renamed_attribute("sibling", "_sibling")

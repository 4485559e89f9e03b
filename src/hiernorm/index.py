"""The index: exact nearest neighbours by inner product, cosine or distance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm._deprecation import renamed_attribute
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import (
    as_count,
    as_hit_count,
    as_ids,
    as_new_ids,
    as_rows,
    as_share,
    as_threshold,
    following_ids,
    is_id,
    next_id_after,
)
from hiernorm.certificate import Certificate, digest
from hiernorm.filters import Where, call_filter, ids_of_array
from hiernorm.fitting import SETTLED, choose_encoding, fill, is_due
from hiernorm.hits import Hits, RangeHits
from hiernorm.progress import ProgressCallback
from hiernorm.settings import Engine, IndexSettings, Metric
from hiernorm.storage.sources import as_array, is_source, read_all
from hiernorm.threads import thread_count
from hiernorm.verification import Verification, verify_hits


class Index:
    """Entries (id, vector) and exact search over them.

    The answer is that of exhaustive search by canonical scores (:mod:`hiernorm.reference`), bit for
    bit: on every instruction set, for any number of threads, any batch and any order of insertion.
    Any finite vectors are accepted. The parameters change the speed, never the answer.

    Parameters
    ----------
    dim
        d, the number of dimensions; at least 2.
    major
        K, the number of leading dimensions that the first scan reads. For HN vectors, the K they
        were normalised with. For plain vectors, the number of leading dimensions of the fitted
        rotation, or None to choose it from the data.
    alpha
        The energy split of HN vectors (see :func:`hiernorm.normalize`), a number or a text such as
        ``"1/8"``; their major is the prefix, as in the paper. None for plain vectors, for which a
        lossless rotation is fitted.
    metric
        ``"ip"`` (inner product), ``"cosine"`` or ``"l2"``, whose score is minus the squared
        Euclidean distance: the best entry is the nearest one.
    engine
        ``"cascade"`` (fast), ``"paper"`` (Algorithm 1 to the letter; needs ``alpha``) or
        ``"exhaustive"`` (every score; no codes, least memory). All are exact.
    cells
        Whether entries with similar directions are stored in groups, so that a search reads only
        the groups that can win (engine ``"cascade"``). None decides by the data: cells pay for
        additions of some ten thousand entries and more; see :meth:`optimize`.
    threads
        Default number of threads per call: HIERNORM_THREADS, or all processors.

    Notes
    -----
    Safe to use from many threads at once. A search sees the entries that were in the index when it
    began; a concurrent change is visible as a whole or not at all.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> index = hiernorm.Index(dim=3)
    >>> index.add([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], ids=[10, 20, 30])
    >>> ids, scores = index.search([1, 0, 0], k=2)
    >>> ids.tolist(), scores.round(3).tolist()
    ([[10, 30]], [[1.0, 0.6]])
    """

    def __init__(
        self,
        dim: int,
        *,
        major: int | None = None,
        alpha: float | str | None = None,
        metric: Metric = "ip",
        engine: Engine = "cascade",
        cells: bool | None = None,
        threads: int | None = None,
    ) -> None:
        share = None if alpha is None else as_share("alpha", alpha)
        self._settings = IndexSettings(dim, major, share, metric, engine, cells, threads)
        self._prepare()

    def _prepare(self) -> None:
        """Set up the members that are neither parameters nor pickled."""
        self._core = self._settings.make_core()
        self._fitted_on = 0
        self._next_id = 0
        self._removals = 0  # changes that removed entries
        self._write_lock = threading.RLock()
        self._digests: dict[tuple[int, int], str] = {}

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K; None while it is still to be chosen from the data."""
        encoding = self._core.encoding()
        return self._settings.major if encoding is None else encoding.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    def engine(self) -> Engine:
        """``"cascade"``, ``"paper"`` or ``"exhaustive"``."""
        return self._settings.engine

    @property
    def nbytes(self) -> int:
        """Memory held by entries, codes and tables, in bytes."""
        return self._core.nbytes

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""
        return np.sort(self._core.ids())

    def __len__(self) -> int:
        return len(self._core)

    def __contains__(self, id: object) -> bool:
        return is_id(id) and bool(self._core.find(as_ids(id))[0])

    def __repr__(self) -> str:
        kind = "plain" if self.alpha is None else f"alpha={self.alpha}"
        major = "" if self.major is None else f"major={self.major}, "
        return (
            f"Index(dim={self.dim}, {major}{kind}, metric={self.metric!r}, "
            f"engine={self.engine!r}, entries={len(self):,}, {self.nbytes / 2**20:.1f} MiB)"
        )

    # Changes.

    def add(
        self, x: Any, ids: npt.ArrayLike | None = None, *, progress: ProgressCallback | None = None
    ) -> None:
        """Add vectors; all of them, or none if one is not acceptable.

        Parameters
        ----------
        x
            ``(n, d)`` or ``(d,)``; anything but float32 is rounded to float32 first. Or a file or
            an iterator, as for :meth:`hiernorm.Database.add`.
        ids
            ``(n,)`` integers from 0 up that are not in the index. By default the ids of the file,
            or the integers that follow the largest id ever used.
        progress
            Called with the number of vectors added so far and the total.

        Raises
        ------
        ValueError
            For NaN, infinity, a wrong number of dimensions, a negative or duplicate id, or
            (cosine) a zero vector. The index is unchanged.
        """
        self._insert(x, ids, progress, replace=False)

    def upsert(
        self, x: Any, ids: npt.ArrayLike | None = None, *, progress: ProgressCallback | None = None
    ) -> None:
        """Add vectors, replacing entries with the same ids; parameters as for :meth:`add`.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0, 1]])
        >>> index.upsert([[0.6, 0.8], [0.8, 0.6]], ids=[1, 2])
        >>> index.ids.tolist(), index.search([0, 1], k=1).ids.tolist()
        ([0, 1, 2], [[1]])
        """
        self._insert(x, ids, progress, replace=True)

    def _insert(
        self, x: Any, ids: npt.ArrayLike | None, progress: ProgressCallback | None, *, replace: bool
    ) -> None:
        x = as_array(x)
        found = None
        if is_source(x):
            x, found = read_all(x, self.dim)
        rows = as_rows("vectors", x, self.dim)
        wanted = found if ids is None else ids
        with self._write_lock:
            given = (
                following_ids(self._next_id, len(rows))
                if wanted is None
                else as_new_ids(wanted, len(rows))
            )
            if len(rows) == 0:
                return
            core = self._core
            fresh = self._settings.needs_fit and core.encoding() is None
            if fresh:
                core = self._settings.make_core()
            if fresh or replace:  # before anything is computed from them
                self._settings.make_core().check(rows, given)
            if fresh:
                core.set_encoding(self._choose_encoding(rows))
            removed = core.removed
            fill(core, given, rows, replace=replace, progress=progress)
            if fresh:
                self._core, self._fitted_on = core, len(rows)
            self._removals += core.removed != removed
            self._next_id = next_id_after(self._next_id, given)
            self._tidy_up()

    def delete(self, ids: npt.ArrayLike, *, ignore_missing: bool = False) -> None:
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
        >>> index.delete([1])
        >>> len(index), 1 in index, index.ids.tolist()
        (2, False, [0, 2])
        """
        wanted = as_ids(ids)
        with self._write_lock:
            found = self._core.find(wanted)
            if not found.all() and not ignore_missing:
                raise KeyError(f"id {wanted[int(np.argmin(found))]} is not in the index")
            self._removals += self._core.remove(wanted) > 0
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

    def _choose_encoding(self, rows: Float32Array) -> _core.Encoding:
        settings = self._settings
        return choose_encoding(
            rows, settings.major, rotate=settings.rotates, metric=settings.metric
        )

    def optimize(self) -> None:
        """Fit the encoding again, on all entries: rotation, steps of the codes, cells.

        Entries that were added a few at a time are in no cell until then, and deleted ones keep
        their memory. The index calls this method automatically when they outnumber the others.

        Answers never change, only speed. It needs the memory of a second index while it runs;
        searches continue meanwhile.
        """
        with self._write_lock:
            if len(self) == 0 or not (self._settings.needs_fit or self._core.removed):
                return
            core = self._settings.make_core()
            ids, rows = self._entries()
            if self._settings.needs_fit:
                core.set_encoding(self._choose_encoding(rows))
            fill(core, ids, rows)
            self._core, self._fitted_on = core, len(core)

    def _sibling(self) -> Index:
        """An empty index with the same parameters and the same encoding, if there is one.

        This saves the fitting for entries of the same kind; answers never depend on it.
        """
        other = Index.__new__(Index)
        other._settings = self._settings
        other._prepare()
        encoding = self._core.encoding()
        if encoding is not None:
            other._core.set_encoding(encoding)
            other._fitted_on = self._fitted_on
        return other

    sibling = renamed_attribute("sibling", "_sibling")

    # Reading.

    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        *,
        where: Where | None = None,
        beta: float | None = None,
        threads: int | None = None,
        batch_size: int | None = None,
    ) -> Hits:
        """The k best entries of each query, best first.

        Parameters
        ----------
        q
            ``(m, d)``, or ``(d,)`` for one query.
        k
            Number of hits. If there are fewer entries, ids are filled with -1, scores with -inf.
        where
            Search only these entries: an array of ids (unknown ids are ignored), a boolean mask
            over :attr:`ids`, or a function that takes an array of ids and returns a boolean for
            each. The answer is that of an index with no other entries.
        beta
            Soft mode, ``0 <= beta <= alpha`` (HN indexes): skip entries as if the minor could add
            no more than ``beta``. This is faster, and each certificate says whether the answer is
            still proved exact, or how far off it can be.
        threads
            Threads for this call.
        batch_size
            Number of queries that share one pass over the codes. The answers do not depend on it.

        Returns
        -------
        Hits, from which ``ids, scores = ...`` takes ids ``(m, k)`` and scores ``(m, k)``, with a
        certificate.

        Examples
        --------
        >>> import numpy as np, hiernorm
        >>> x = hiernorm.normalize(np.random.default_rng(0).standard_normal((500, 32)), 8, 1/8)
        >>> index = hiernorm.Index(dim=32, major=8, alpha=1/8)
        >>> index.add(x)
        >>> hits = index.search(x[:3], k=5)
        >>> hits.ids.shape, hits.ids[:, 0].tolist()
        ((3, 5), [0, 1, 2])
        >>> index.search(x[:1], k=2, where=[3, 4]).ids.shape
        (1, 2)
        """
        queries = as_rows("queries", q, self._settings.dim)
        removals = self._removals
        found, live = self._core.search(
            queries,
            as_hit_count(k, len(queries), len(self)),
            self._settings.checked_beta(beta),
            self._thread_count(threads),
            0 if batch_size is None else as_count("batch_size", batch_size),
            self._ids_of(where),
        )
        return Hits(*found, self._digest_later(removals, live), self.metric)

    def _ids_of(self, where: Where | None) -> Int64Array | None:
        """The ids to which ``where`` limits a search; None without a limit."""
        if where is None:
            return None
        if callable(where):
            ids = self._core.ids()
            return ids[call_filter(where, ids)]
        return ids_of_array(where, len(self), lambda: self.ids, "index")

    def _thread_count(self, threads: int | None) -> int:
        return thread_count(self._settings.threads if threads is None else threads)

    def range(
        self,
        q: npt.ArrayLike,
        threshold: float,
        *,
        where: Where | None = None,
        threads: int | None = None,
    ) -> RangeHits:
        """Every entry with score >= threshold, best first.

        Parameters
        ----------
        q
            ``(m, d)``, or ``(d,)`` for one query.
        threshold
            The minimum score of a hit; finite.
        where, threads
            As for :meth:`search`.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0.6, 0.8], [0, 1]])
        >>> ids, scores = index.range([1, 0], threshold=0.5)[0]
        >>> ids.tolist()
        [0, 1]
        """
        queries = as_rows("queries", q, self._settings.dim)
        least = as_threshold(threshold)
        removals = self._removals
        found, live = self._core.range(
            queries, least, self._thread_count(threads), self._ids_of(where)
        )
        offsets, ids, scores, work, skipped_bound, entries = found
        certificate = Certificate(
            entries,
            work,
            np.full(len(queries), least),
            skipped_bound,
            self._digest_later(removals, live),
        )
        return RangeHits(offsets, ids, scores, certificate, self.metric)

    def reconstruct(self, ids: npt.ArrayLike) -> Float32Array:
        """The vectors of ``ids``: ``(n, d)`` float32, as they were added.

        Raises
        ------
        KeyError
            Naming the first id that is not in the index.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0.5, 0.5]], ids=[7, 8])
        >>> index.reconstruct([8])
        array([[0.5, 0.5]], dtype=float32)
        """
        return self._core.reconstruct(as_ids(ids))

    def verify(
        self,
        q: npt.ArrayLike,
        hits: Hits,
        *,
        where: Where | None = None,
        threads: int | None = None,
    ) -> Verification:
        """Compare an answer with exhaustive search and list the differences.

        If a certificate says exact, ids and scores must have the same bits. Otherwise (soft mode)
        the true k-th score must be within the certified gap. ``where`` is that of the search.

        Examples
        --------
        >>> import numpy as np, hiernorm
        >>> x = np.random.default_rng(0).standard_normal((100, 8))
        >>> index = hiernorm.Index(dim=8)
        >>> index.add(x)
        >>> index.verify(x[:5], index.search(x[:5], k=3)).ok
        True
        """
        queries = as_rows("queries", q, self._settings.dim)
        ids, scores, _, _, entries = self._core.search_all(
            queries, hits.ids.shape[1], self._thread_count(threads), self._ids_of(where)
        )
        return verify_hits(hits, queries, (ids, scores, entries), self.metric, self.reconstruct)

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and entries, independent of the order of insertion."""
        with self._write_lock:
            return self._digest(self._removals, len(self))

    def _digest_later(self, removals: int, entries: int) -> Callable[[], str]:
        return lambda: self._digest(removals, entries)

    def _digest(self, removals: int, entries: int) -> str:
        """The digest of the first entries; empty if some were removed since."""
        with self._write_lock:
            if removals != self._removals:
                return ""
            if (removals, entries) not in self._digests:
                ids, rows = self._entries(entries)
                text = digest(self._settings.digested(), ids, rows)
                self._digests = {(removals, entries): text}
            return self._digests[removals, entries]

    def _entries(self, count: int | None = None) -> tuple[Int64Array, Float32Array]:
        """Ids and rows of the first ``count`` entries in order of insertion."""
        core = self._core
        return core.entries(0, len(core) if count is None else count)

    def __getstate__(self) -> dict[str, Any]:
        with self._write_lock:
            ids, rows = self._entries()
            encoding = self._core.encoding()
            return {
                "settings": self._settings,
                "ids": ids,
                "rows": rows,
                "fit": None if encoding is None else (encoding.state(), encoding.rotation()),
                "fitted_on": self._fitted_on,
                "next_id": self._next_id,
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._settings = state["settings"]
        self._prepare()
        if state["fit"] is not None:
            self._core.set_encoding(_core.Encoding.restore(self.dim, *state["fit"]))
        if len(state["ids"]):
            fill(self._core, state["ids"], state["rows"])
        self._fitted_on = state["fitted_on"]
        self._next_id = state["next_id"]

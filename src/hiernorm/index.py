"""The index: exact nearest neighbours by inner product, cosine or distance."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_count, as_ids, as_rows
from hiernorm.certificate import Certificate, digest
from hiernorm.fitting import choose_encoding, fill, is_due
from hiernorm.hits import Hits, RangeHits
from hiernorm.settings import IndexSettings
from hiernorm.threads import thread_count
from hiernorm.verification import Verification, verify_hits

MAX_HITS = 2**31 - 1


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
        The energy split of HN vectors (see :func:`hiernorm.normalize`), whose major is the prefix,
        as in the paper. None for plain vectors, for which a lossless rotation is fitted.
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
    began; a concurrent addition is visible as a whole or not at all.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> index = hiernorm.Index(dim=3)
    >>> index.add([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], ids=[10, 20, 30])
    >>> hits = index.search([1, 0, 0], k=2)
    >>> hits.ids.tolist(), hits.scores.round(3).tolist()
    ([[10, 30]], [[1.0, 0.6]])
    """

    def __init__(
        self,
        dim: int,
        *,
        major: int | None = None,
        alpha: float | None = None,
        metric: str = "ip",
        engine: str = "cascade",
        cells: bool | None = None,
        threads: int | None = None,
    ) -> None:
        self._settings = IndexSettings(dim, major, alpha, metric, engine, cells, threads)
        self._prepare()

    def _prepare(self) -> None:
        """Set up the members that are neither parameters nor pickled."""
        self._core = self._settings.make_core()
        self._fitted_on = 0
        self._write_lock = threading.RLock()
        self._digests: dict[int, str] = {}

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
    def metric(self) -> str:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    def engine(self) -> str:
        """``"cascade"``, ``"paper"`` or ``"exhaustive"``."""
        return self._settings.engine

    @property
    def nbytes(self) -> int:
        """Memory held by entries, codes and tables, in bytes."""
        return self._core.nbytes

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in order of insertion."""
        return self._entries()[0]

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        kind = "plain" if self.alpha is None else f"alpha={self.alpha}"
        major = "" if self.major is None else f"major={self.major}, "
        return (
            f"Index(dim={self.dim}, {major}{kind}, metric={self.metric!r}, "
            f"engine={self.engine!r}, entries={len(self):,}, {self.nbytes / 2**20:.1f} MiB)"
        )

    def add(self, x: npt.ArrayLike, ids: npt.ArrayLike | None = None) -> None:
        """Add vectors; all of them, or none if one is not acceptable.

        Parameters
        ----------
        x
            ``(n, d)`` or ``(d,)``; anything but float32 is rounded to float32 first.
        ids
            ``(n,)`` integers that are not in the index yet; by default n, n + 1, ... for an index
            of n entries.

        Raises
        ------
        ValueError
            For NaN, infinity, a wrong number of dimensions, a duplicate id, or (cosine) a zero
            vector. The index is unchanged.
        """
        rows = as_rows("vectors", x, self.dim)
        with self._write_lock:
            first = len(self)
            given = (
                np.arange(first, first + len(rows), dtype=np.int64)
                if ids is None
                else as_ids(ids, len(rows))
            )
            if len(rows) == 0:
                return
            if self._settings.needs_fit and self._core.encoding() is None:
                core = self._settings.make_core()
                core.check(rows, given)
                self._fit_and_fill(core, given, rows)
                self._core, self._fitted_on = core, len(rows)
                return
            fill(self._core, given, rows)
            ungrouped = self._core.ungrouped if self._settings.groups else 0
            if self._settings.needs_fit and is_due(self._fitted_on, len(self), ungrouped):
                self.optimize()

    def _fit_and_fill(self, core: _core.Index, ids: Int64Array, rows: Float32Array) -> None:
        settings = self._settings
        core.set_encoding(
            choose_encoding(rows, settings.major, rotate=settings.rotates, metric=settings.metric)
        )
        fill(core, ids, rows)

    def optimize(self) -> None:
        """Fit the encoding again, on all entries: rotation, steps of the codes, cells.

        Entries that were added a few at a time are in no cell until then. The index calls this
        method automatically when they outnumber the others.

        Answers never change, only speed. It needs the memory of a second index while it runs;
        searches continue meanwhile.
        """
        with self._write_lock:
            if len(self) == 0 or not self._settings.needs_fit:
                return
            core = self._settings.make_core()
            self._fit_and_fill(core, *self._entries())
            self._core, self._fitted_on = core, len(core)

    def sibling(self) -> Index:
        """An empty index with the same parameters and the same encoding, if there is one.

        This saves the fitting for entries of the same kind; answers never depend on it.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=3)
        >>> index.add([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        >>> other = index.sibling()
        >>> len(other), other.major == index.major
        (0, True)
        """
        other = Index.__new__(Index)
        other._settings = self._settings
        other._prepare()
        encoding = self._core.encoding()
        if encoding is not None:
            other._core.set_encoding(encoding)
            other._fitted_on = self._fitted_on
        return other

    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        *,
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
        Hits with ids ``(m, k)``, scores ``(m, k)`` and a certificate.

        Examples
        --------
        >>> import numpy as np, hiernorm
        >>> x = hiernorm.normalize(np.random.default_rng(0).standard_normal((500, 32)), 8, 1/8)
        >>> index = hiernorm.Index(dim=32, major=8, alpha=1/8)
        >>> index.add(x)
        >>> hits = index.search(x[:3], k=5)
        >>> hits.ids.shape, hits.ids[:, 0].tolist()
        ((3, 5), [0, 1, 2])
        """
        queries = as_rows("queries", q, self._settings.dim)
        found = self._core.search(
            queries,
            as_count("k", k, most=MAX_HITS),
            self._settings.checked_beta(beta),
            self._thread_count(threads),
            0 if batch_size is None else as_count("batch_size", batch_size),
        )
        return Hits(*found, self._digest)

    def _thread_count(self, threads: int | None) -> int:
        return thread_count(self._settings.threads if threads is None else threads)

    def range(self, q: npt.ArrayLike, threshold: float, *, threads: int | None = None) -> RangeHits:
        """Every entry with score >= threshold, best first.

        Parameters
        ----------
        q
            ``(m, d)``, or ``(d,)`` for one query.
        threshold
            The minimum score of a hit; finite.
        threads
            Threads for this call.

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
        if not np.isfinite(threshold):
            raise ValueError(f"threshold must be finite, got {threshold}")
        offsets, ids, scores, work, skipped_bound, entries = self._core.range(
            queries,
            float(threshold),
            self._thread_count(threads),
        )
        certificate = Certificate(
            entries,
            work,
            np.full(len(queries), float(threshold)),
            skipped_bound,
            lambda: self._digest(entries),
        )
        return RangeHits(offsets, ids, scores, certificate)

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

    def verify(self, q: npt.ArrayLike, hits: Hits, *, threads: int | None = None) -> Verification:
        """Compare an answer with exhaustive search and list the differences.

        If a certificate says exact, ids and scores must have the same bits. Otherwise (soft mode)
        the true k-th score must be within the certified gap.

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
        if len(queries) != len(hits):
            raise ValueError(f"{len(queries)} queries, but hits of {len(hits)}")
        count = self._thread_count(threads)
        ids, scores, _, _, entries = self._core.search_all(queries, hits.ids.shape[1], count)
        return verify_hits(hits, queries, (ids, scores, entries), self.metric, self.reconstruct)

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and entries, independent of the order of insertion."""
        return self._digest(len(self))

    def _digest(self, entries: int) -> str:
        if entries not in self._digests:
            ids, rows = self._entries(entries)
            self._digests = {entries: digest(self._settings.digested(), ids, rows)}
        return self._digests[entries]

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
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._settings = state["settings"]
        self._prepare()
        if state["fit"] is not None:
            self._core.set_encoding(_core.Encoding.restore(self.dim, *state["fit"]))
        if len(state["ids"]):
            fill(self._core, state["ids"], state["rows"])
        self._fitted_on = state["fitted_on"]

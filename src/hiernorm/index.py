"""The index: exact nearest neighbours by inner product, cosine or distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import Float32Array
from hiernorm.arrays import (
    MAX_HITS,
    as_count,
    as_hit_count,
    as_rows,
    as_share,
    as_threshold,
)
from hiernorm.certificate import Certificate, read_stats
from hiernorm.explanation import Explanation, explain_index
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.index_persistence import IndexPersistence
from hiernorm.payload.answers import payload_of_hits
from hiernorm.payload.memory import MemoryPayload
from hiernorm.settings import Engine, IndexSettings, Metric
from hiernorm.verification import Verification, verify_hits


class Index(IndexPersistence):
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
        ``"cascade"`` (fast; plain vectors that no rotation orders are searched as by ``"flat"``),
        ``"paper"`` (Algorithm 1 to the letter; needs ``alpha``), ``"flat"`` (float32 scores of all
        rows, then canonical scores of what can be a hit; no codes, least memory) or
        ``"exhaustive"`` (every canonical score). All are exact. See :meth:`explain`.
    cells
        Whether entries with similar directions are stored in groups, so that a search reads only
        the groups that can win (engine ``"cascade"``). None decides by the data: cells pay for
        additions of some ten thousand entries and more; see :meth:`optimize`.
    string_keys
        Whether entries are named by strings, as in :meth:`hiernorm.Database.create`.
    threads
        Default number of threads per call: HIERNORM_THREADS, or all processors; read once, when
        the index is made.

    Notes
    -----
    Safe to use from many threads at once. A search sees the entries that were in the index when it
    began; a concurrent change is visible as a whole or not at all.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> index = hiernorm.Index(dim=3)
    >>> index.add([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], ids=[10, 20, 30])
    3
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
        string_keys: bool = False,
        threads: int | None = None,
    ) -> None:
        share = None if alpha is None else as_share("alpha", alpha)
        self._settings = IndexSettings(dim, major, share, metric, engine, cells, threads)
        self._payload = MemoryPayload(string_keys)
        self._prepare()

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
            each; or a condition on the payload such as ``"lang = 'en' and year >= 2020"``, as
            for :meth:`hiernorm.Database.select`. The answer is that of an index with no other
            entries.
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
        500
        >>> hits = index.search(x[:3], k=5)
        >>> hits.ids.shape, hits.ids[:, 0].tolist()
        ((3, 5), [0, 1, 2])
        >>> index.search(x[:1], k=2, where=[3, 4]).ids.shape
        (1, 2)
        """
        removals = self._removals
        count = self._threads if threads is None else as_count("threads", threads)
        found = None
        try:
            # Nearly all calls: nothing is to be checked or converted that the core does not.
            plain = where is None and beta is None and batch_size is None
            if plain and type(k) is int and 0 < k <= MAX_HITS:
                found = self._core.search_plain(q, k, count)
            if found is None:
                queries = as_rows("queries", q, self._settings.dim)
                found = self._core.search(
                    queries,
                    as_hit_count(k, len(queries), len(self)),
                    self._settings.checked_beta(beta),
                    count,
                    0 if batch_size is None else as_count("batch_size", batch_size),
                    self._ids_of(where),
                )
        except _core.DamagedBlockError:
            raise self._damage() from None
        ids, scores, stats, entries, live = found
        return Hits(
            ids,
            scores,
            stats,
            entries,
            self._digest,
            self._settings.metric,
            self._payload if self._payload.columns else None,
            "" if self._file is None else self._checked(),
            (removals, live),
        )

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
        3
        >>> ids, scores = index.range([1, 0], threshold=0.5)[0]
        >>> ids.tolist()
        [0, 1]
        """
        queries = as_rows("queries", q, self._settings.dim)
        least = as_threshold(threshold)
        removals = self._removals
        try:
            offsets, ids, scores, stats, entries, live = self._core.range(
                queries, least, self._thread_count(threads), self._ids_of(where)
            )
        except _core.DamagedBlockError:
            raise self._damage() from None
        work, skipped_bound = read_stats(stats)
        certificate = Certificate(
            entries,
            work,
            np.full(len(queries), least),
            skipped_bound,
            lambda: self._digest(removals, live),
            checked=self._checked(),
        )
        payload = payload_of_hits(self._payload)
        return RangeHits(offsets, ids, scores, certificate, self.metric, payload)

    def reconstruct(self, ids: npt.ArrayLike | Sequence[str]) -> Float32Array:
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
        2
        >>> index.reconstruct([8])
        array([[0.5, 0.5]], dtype=float32)
        """
        try:
            return self._core.reconstruct(self._payload.ids_of(ids))
        except _core.DamagedBlockError:
            raise self._damage() from None

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
        100
        >>> index.verify(x[:5], index.search(x[:5], k=3)).ok
        True
        """
        queries = as_rows("queries", q, self._settings.dim)
        try:
            ids, scores, entries = self._core.search_all(
                queries, hits.ids.shape[1], self._thread_count(threads), self._ids_of(where)
            )
        except _core.DamagedBlockError:
            raise self._damage() from None
        return verify_hits(hits, queries, (ids, scores, entries), self.metric, self.reconstruct)

    def explain(self, queries: npt.ArrayLike | None = None, k: int = 10) -> Explanation:
        """Measure how this index searches its vectors, and whether it beats brute force.

        It takes about a second. ``print`` the result for a summary.

        Parameters
        ----------
        queries
            ``(m, d)``: typical queries. By default entries of the index serve as queries, each for
            one hit more: the first is the entry itself.
        k
            Hits per query.

        Examples
        --------
        >>> import numpy as np, hiernorm
        >>> x = np.random.default_rng(0).standard_normal((2000, 64)) * 0.8 ** np.arange(64)
        >>> index = hiernorm.Index(dim=64)
        >>> index.add(x)
        2000
        >>> found = index.explain()
        >>> found.engine, found.dims_for(0.9), found.share_refined < 0.1
        ('cascade', 6, True)
        """
        if len(self) == 0:
            raise ValueError("the index is empty: add vectors to explain how they are searched")
        rows = None if queries is None else as_rows("queries", queries, self.dim)
        count = as_count("k", k, most=MAX_HITS - 1)
        try:
            return explain_index(self._settings, self._core, rows, count)
        except _core.DamagedBlockError:
            raise self._damage() from None

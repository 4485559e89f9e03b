"""The answers of a search: the k best entries, or all from a score up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.certificate import Certificate, read_stats
from hiernorm.extras import import_extra
from hiernorm.payload import PayloadReader, answers


class Hits:
    """The k best entries of each query, best first; ``ids, scores = hits`` gives both arrays.

    ``len(hits)`` is the number of queries, ``hits[i]`` has ids and scores of query i, and
    :meth:`queries` iterates over them. A pickled answer does not take the index along.

    Attributes
    ----------
    ids : (m, k) int64
        -1 where there are fewer than k entries.
    scores : (m, k) float64
        Canonical scores; -inf where there are fewer than k entries.
    certificate : Certificate
        Per query: what was proved, and the work it took.
    metric : str
        What the scores are: ``"ip"``, ``"cosine"`` or ``"l2"``.

    Examples
    --------
    >>> import hiernorm
    >>> index = hiernorm.Index(dim=2, metric="l2")
    >>> index.add([[0, 0], [3, 4]])
    2
    >>> hits = index.search([[0, 0], [3, 4]], k=2)
    >>> ids, scores = hits
    >>> ids.tolist(), scores.tolist()
    ([[0, 1], [1, 0]], [[0.0, -25.0], [0.0, -25.0]])
    >>> hits.distances[0].tolist(), hits[1][0].tolist()
    ([0.0, 5.0], [1, 0])
    """

    __slots__ = ("_certificate", "_payload", "_proof", "ids", "metric", "scores")

    def __init__(
        self,
        ids: Int64Array,
        scores: Float64Array,
        stats: bytes,
        entries: int,
        digest: Callable[..., str],
        metric: str,
        payload: PayloadReader | None = None,
        checked: str = "",
        version: tuple[int, ...] = (),
    ) -> None:
        self.ids = ids
        self.scores = scores
        self.metric = metric
        self._payload = payload
        # ``digest`` takes ``version``: a closure over it would cost a twentieth of a small search.
        self._proof: tuple[bytes, int, Callable[..., str], tuple[int, ...], str] | None
        self._proof = (stats, entries, digest, version, checked)
        self._certificate: Certificate | None = None

    @property
    def certificate(self) -> Certificate:
        """Per query: what was proved, and the work it took."""
        if self._certificate is None:
            assert self._proof is not None
            stats, entries, digest, version, checked = self._proof
            work, skipped_bound = read_stats(stats)
            self._certificate = Certificate(
                entries,
                work,
                self.scores[:, -1],
                skipped_bound,
                partial(digest, *version),
                checked=checked,
            )
        return self._certificate

    @property
    def distances(self) -> Float64Array:
        """``(m, k)``: Euclidean distances (l2) or one minus the cosine; infinite without a hit.

        Ranks go by :attr:`scores`, whose bits are promised; distances are computed from them.
        """
        return distances_of(self.scores, self.metric)

    @property
    def keys(self) -> npt.NDArray[np.object_]:
        """``(m, k)``: the string keys of the hits, None where there are fewer than k entries.

        Of a container with ``string_keys=True``; the others have no such attribute.
        """
        return answers.keys_of(self._payload, self.ids)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with a row per hit, of one query after the other, best first.

        Its columns are ``query`` and ``rank`` (both from 0: the hit is ``ids[query, rank]``),
        ``id``, ``score``, ``distance`` (l2 and cosine), then the string key and the payload. A
        payload column that is called as one of these comes as ``payload.<name>``.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[0, 1], [3, 4]])
        2
        >>> index.search([0, 1], k=5).to_arrow().to_pylist()[0]
        {'query': 0, 'rank': 0, 'id': 1, 'score': 4.0}
        """
        queries, k = self.ids.shape
        return answers.hits_table(
            np.repeat(np.arange(queries), k),
            np.tile(np.arange(k), queries),
            self.ids.ravel(),
            self.scores.ravel(),
            None if self.metric == "ip" else self.distances.ravel(),
            self._payload,
        )

    def to_pandas(self) -> Any:
        """:meth:`to_arrow` as a ``pandas.DataFrame``."""
        import_extra("pandas", extra="pandas")
        return self.to_arrow().to_pandas()

    def checked(self, queries: int, k: int) -> tuple[Int64Array, Float64Array]:
        """Ids and scores as the core takes them; ValueError unless the shape is (queries, k)."""
        if self.ids.shape != (queries, k) or self.scores.shape != (queries, k):
            raise ValueError(f"known hits have shape {self.ids.shape}, expected ({queries}, {k})")
        if np.isnan(self.scores).any():
            raise ValueError("known hits have scores that are NaN")
        return (
            np.ascontiguousarray(self.ids, np.int64),
            np.ascontiguousarray(self.scores, np.float64),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> tuple[Int64Array, Float64Array]:
        """Ids ``(k,)`` and scores ``(k,)`` of one query."""
        return self.ids[query], self.scores[query]

    def __iter__(self) -> Iterator[Any]:
        """:attr:`ids`, then :attr:`scores`: two arrays, whatever the number of queries."""
        return iter((self.ids, self.scores))

    def queries(self) -> Iterator[tuple[Int64Array, Float64Array]]:
        """Ids and scores of one query after the other."""
        return (self[query] for query in range(len(self)))

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        names = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        payload = None if self._payload is None else answers.KeptPayload(self._payload, self.ids)
        state = {"_certificate": self.certificate, "_proof": None, "_payload": payload}
        return None, {name: getattr(self, name) for name in names} | state

    def __repr__(self) -> str:
        return f"Hits(queries={len(self)}, k={self.ids.shape[1]})"


class RangeHits:
    """All entries of each query from a score up, best first.

    ``len(hits)`` is the number of queries, ``hits[i]`` has ids and scores of query i, and an
    iteration yields one such pair per query: there are as many hits as there are.

    Attributes
    ----------
    ids, scores : (total,) int64 and float64
        The hits of all queries, one query after the other.
    offsets : (m + 1,) int64
        The hits of query i are ``ids[offsets[i]:offsets[i + 1]]``; so is ``hits[i]``.
    certificate : Certificate
        Per query; its ``kth_score`` is the threshold.
    metric : str
        What the scores are: ``"ip"``, ``"cosine"`` or ``"l2"``.
    """

    __slots__ = ("_payload", "certificate", "ids", "metric", "offsets", "scores")

    def __init__(
        self,
        offsets: Int64Array,
        ids: Int64Array,
        scores: Float64Array,
        certificate: Certificate,
        metric: str,
        payload: PayloadReader | None = None,
    ) -> None:
        self.offsets = offsets
        self.ids = ids
        self.scores = scores
        self.certificate = certificate
        self.metric = metric
        self._payload = payload

    @property
    def distances(self) -> Float64Array:
        """``(total,)``, as :attr:`Hits.distances`."""
        return distances_of(self.scores, self.metric)

    @property
    def keys(self) -> npt.NDArray[np.object_]:
        """``(total,)``, as :attr:`Hits.keys`."""
        return answers.keys_of(self._payload, self.ids)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with a row per hit, as :meth:`Hits.to_arrow`."""
        counts = np.diff(self.offsets)
        return answers.hits_table(
            np.repeat(np.arange(len(self)), counts),
            np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], counts),
            self.ids,
            self.scores,
            None if self.metric == "ip" else self.distances,
            self._payload,
        )

    def to_pandas(self) -> Any:
        """:meth:`to_arrow` as a ``pandas.DataFrame``."""
        import_extra("pandas", extra="pandas")
        return self.to_arrow().to_pandas()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        payload = None if self._payload is None else answers.KeptPayload(self._payload, self.ids)
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, state | {"_payload": payload}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> tuple[Int64Array, Float64Array]:
        """Ids and scores of one query."""
        if not -len(self) <= query < len(self):
            raise IndexError(f"query {query} of {len(self)}")
        query %= len(self)
        part = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return self.ids[part], self.scores[part]

    def __iter__(self) -> Iterator[tuple[Int64Array, Float64Array]]:
        return self.queries()

    def queries(self) -> Iterator[tuple[Int64Array, Float64Array]]:
        """Ids and scores of one query after the other."""
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return f"RangeHits(queries={len(self)}, total={len(self.ids)})"


def distances_of(scores: Float64Array, metric: str) -> Float64Array:
    """Distances that belong to ``scores``; AttributeError for inner products, which have none.

    Examples
    --------
    >>> import numpy as np
    >>> distances_of(np.array([-25.0, -np.inf]), "l2").tolist()
    [5.0, inf]
    >>> distances_of(np.array([0.25]), "cosine").tolist()
    [0.75]
    """
    if metric == "l2":
        lengths: Float64Array = np.sqrt(0.0 - scores)
        return lengths
    if metric == "cosine":
        return 1.0 - scores
    raise AttributeError(f"metric {metric!r} has scores, and no distances")

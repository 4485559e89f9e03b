"""Merged answers of shards, and certificates that name the shards that did not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiernorm._deprecation import renamed_names
from hiernorm.array_types import BoolArray, Float64Array, Int64Array
from hiernorm.certificate import Certificate
from hiernorm.distributed.placement import shard_of
from hiernorm.hits import Hits
from hiernorm.payload import PayloadReader


@dataclass(frozen=True)
class MissingShards:
    """The shards that did not contribute to an answer.

    Attributes
    ----------
    shards
        Their numbers, ascending.
    of
        The number of all shards: the ids that were not searched are those with ``shard_of(id, of)``
        among ``shards``.
    entries
        The number of entries in the missing shards.
    """

    shards: tuple[int, ...]
    of: int
    entries: int

    def holds(self, ids: npt.ArrayLike) -> BoolArray:
        """Which of ``ids`` belong to a missing shard.

        Examples
        --------
        >>> MissingShards(shards=(2,), of=3, entries=10).holds([0, 1, 2, 3]).tolist()
        [False, True, False, False]
        """
        return np.isin(shard_of(ids, self.of), self.shards)

    def __str__(self) -> str:
        names = ", ".join(str(shard) for shard in self.shards)
        return f"{self.entries:,} entries with shard_of(id, {self.of}) in ({names})"


class ShardedCertificate(Certificate):
    """A certificate that also says which shards did not answer.

    Attributes
    ----------
    missing : MissingShards or None
        What was not searched; then ``exact`` is False and ``gap`` infinite for every query.
    """

    __slots__ = ("missing",)

    def __init__(
        self,
        entries: int,
        work: Int64Array,
        kth_score: Float64Array,
        skipped_bound: Float64Array,
        digest: Callable[[], str],
        missing: MissingShards | None,
        *,
        checked: str = "",
    ) -> None:
        if missing is not None:  # an entry that was not searched may have any score
            skipped_bound = np.full_like(skipped_bound, np.inf)
        super().__init__(entries, work, kth_score, skipped_bound, digest, checked=checked)
        self.missing = missing


class ShardedHits(Hits):
    """Hits with the certificate of all shards and the time of each step.

    Attributes
    ----------
    seconds : dict of str to float
        ``total``: the whole call; ``shards``: the slowest shard of every wave; ``merge``. The rest
        of the total is Ray and the network.
    """

    __slots__ = ("seconds",)

    def __init__(
        self,
        ids: Int64Array,
        scores: Float64Array,
        certificate: ShardedCertificate,
        seconds: dict[str, float],
        metric: str,
        payload: PayloadReader | None = None,
    ) -> None:
        self.ids = ids
        self.scores = scores
        self.metric = metric
        self._payload = payload
        self._proof = None
        self._certificate: ShardedCertificate = certificate
        self.seconds = seconds

    @property
    def certificate(self) -> ShardedCertificate:
        """Per query: what was proved, the work it took, and which shards are missing."""
        return self._certificate


def merge_best(
    parts: Sequence[tuple[Int64Array, Float64Array]], k: int
) -> tuple[Int64Array, Float64Array]:
    """The k best hits of all parts, each ids and scores ``(m, k)``; a hit may be in several.

    Examples
    --------
    >>> a = np.array([[3, 9]]), np.array([[0.9, 0.5]])
    >>> b = np.array([[9, 4]]), np.array([[0.5, 0.5]])
    >>> [part.tolist() for part in merge_best([a, b], 3)]
    [[[3, 4, 9]], [[0.9, 0.5, 0.5]]]
    """
    ids = np.concatenate([part[0] for part in parts], axis=1)
    scores = np.concatenate([part[1] for part in parts], axis=1)
    order = np.lexsort((ids, -scores), axis=1)
    ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
    again = np.zeros(ids.shape, np.bool_)
    again[:, 1:] = (ids[:, 1:] == ids[:, :-1]) & (scores[:, 1:] == scores[:, :-1])
    ids[again], scores[again] = -1, -np.inf  # as where there are fewer than k
    kept = np.argsort(again, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, kept, 1), np.take_along_axis(scores, kept, 1)


def merge_ranges(
    parts: Sequence[tuple[Int64Array, Int64Array, Float64Array]], queries: int
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """All hits of parts (offsets, ids, scores), best first for every query."""
    asked = [np.repeat(np.arange(queries), np.diff(part[0])) for part in parts]
    query = np.concatenate([np.empty(0, np.int64), *asked])
    ids = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    scores = np.concatenate([np.empty(0, np.float64), *(part[2] for part in parts)])
    order = np.lexsort((ids, -scores, query))
    offsets = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=queries), out=offsets[1:])
    return offsets, ids[order], scores[order]


__getattr__ = renamed_names(__name__, {"Missing": "hiernorm.distributed.answers:MissingShards"})

"""The answers of a search: the k best entries, or all from a score up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.certificate import Certificate


class Hits:
    """The k best entries of each query, best first.

    Attributes
    ----------
    ids : (m, k) int64
        -1 where there are fewer than k entries.
    scores : (m, k) float64
        Canonical scores; -inf where there are fewer than k entries.
    certificate : Certificate
        Per query: what was proved, and the work it took.
    """

    __slots__ = ("_certificate", "_proof", "ids", "scores")

    def __init__(
        self,
        ids: Int64Array,
        scores: Float64Array,
        work: Int64Array,
        skipped_bound: Float64Array,
        entries: int,
        digest: Callable[[int], str],
    ) -> None:
        self.ids = ids
        self.scores = scores
        self._proof = (work, skipped_bound, entries, digest)
        self._certificate: Certificate | None = None

    @property
    def certificate(self) -> Certificate:
        """Per query: what was proved, and the work it took."""
        if self._certificate is None:
            work, skipped_bound, entries, digest = self._proof
            self._certificate = Certificate(
                entries, work, self.scores[:, -1], skipped_bound, lambda: digest(entries)
            )
        return self._certificate

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

    def __repr__(self) -> str:
        return f"Hits(queries={len(self)}, k={self.ids.shape[1]})"


class RangeHits:
    """All entries of each query from a score up, best first.

    Attributes
    ----------
    ids, scores : (total,) int64 and float64
        The hits of all queries, one query after the other.
    offsets : (m + 1,) int64
        The hits of query i are ``ids[offsets[i]:offsets[i + 1]]``; so is ``hits[i]``.
    certificate : Certificate
        Per query; its ``kth_score`` is the threshold.
    """

    __slots__ = ("certificate", "ids", "offsets", "scores")

    def __init__(
        self, offsets: Int64Array, ids: Int64Array, scores: Float64Array, certificate: Certificate
    ) -> None:
        self.offsets = offsets
        self.ids = ids
        self.scores = scores
        self.certificate = certificate

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
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return f"RangeHits(queries={len(self)}, total={len(self.ids)})"

"""The results of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

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
        """Ids and scores as the core takes them, if they are of so many queries and hits."""
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


@dataclass(frozen=True)
class Verification:
    """What an exhaustive search says of an answer: ``ok``, or how it differs."""

    differences: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Nothing differs."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok


def compare(
    hits: Hits,
    true_ids: Int64Array,
    true_scores: Float64Array,
    rescore: Callable[[int, Int64Array], Float64Array],
) -> list[str]:
    """How ``hits`` differ from the exhaustive answer, beyond what their certificate admits.

    ``rescore(query, ids)`` gives the canonical scores of entries, NaN if one is unknown.
    """
    differences = []
    for query, proof in enumerate(hits.certificate):
        ids, scores = hits.ids[query], hits.scores[query]
        if proof.exact:
            if not np.array_equal(ids, true_ids[query]):
                rank = int(np.argmax(ids != true_ids[query]))
                differences.append(
                    f"query {query}, rank {rank}: id {ids[rank]} returned as exact, "
                    f"exhaustive search gives {true_ids[query][rank]}"
                )
            elif scores.tobytes() != true_scores[query].tobytes():
                rank = int(np.argmax(scores != true_scores[query]))
                differences.append(
                    f"query {query}, rank {rank}: score {scores[rank]!r} returned, "
                    f"exhaustive search gives {true_scores[query][rank]!r}"
                )
            continue
        found = ~np.isneginf(scores)
        if rescore(query, ids[found]).tobytes() != scores[found].tobytes():
            differences.append(f"query {query}: scores returned are not those of the ids returned")
        if len(np.unique(ids[found])) < found.sum():
            differences.append(f"query {query}: an id is returned twice")
        if true_scores[query][-1] > proof.kth_score + proof.gap:
            differences.append(
                f"query {query}: k-th score {proof.kth_score!r} and gap {proof.gap!r} returned, "
                f"exhaustive search gives {true_scores[query][-1]!r}"
            )
        missed = ~np.isin(true_ids[query], ids)
        if missed.any() and true_scores[query][missed].max() > proof.skipped_bound:
            differences.append(
                f"query {query}: nothing skipped was to exceed {proof.skipped_bound!r}, "
                f"but a score of {true_scores[query][missed].max()!r} was"
            )
    return differences

"""Verification of an answer against exhaustive search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.hits import Hits
from hiernorm.reference import canonical_scores


@dataclass(frozen=True)
class Verification:
    """The result of a check: ``ok``, or a list of differences."""

    differences: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok


def verify_hits(
    hits: Hits,
    queries: Float32Array,
    exhaustive: tuple[Int64Array, Float64Array, int],
    metric: str,
    reconstruct: Callable[[Int64Array], Float32Array],
) -> Verification:
    """Compare ``hits`` with the ids, scores and number of entries of exhaustive search."""
    if len(queries) != len(hits):
        raise ValueError(f"{len(queries)} queries, but hits of {len(hits)}")
    ids, scores, entries = exhaustive
    if entries != hits.certificate.entries:
        return Verification(
            [
                f"the certificate speaks of {hits.certificate.entries} entries, "
                f"the index now has {entries}: search again"
            ]
        )

    def rescore(query: int, found: Int64Array) -> Float64Array:
        try:
            rows = reconstruct(found)
        except KeyError:
            return np.full(len(found), np.nan)
        return canonical_scores(queries[query], rows, metric)

    return Verification(compare_hits(hits, ids, scores, rescore))


def compare_hits(
    hits: Hits,
    true_ids: Int64Array,
    true_scores: Float64Array,
    rescore: Callable[[int, Int64Array], Float64Array],
) -> list[str]:
    """How ``hits`` differ from the exhaustive answer by more than their certificate allows.

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

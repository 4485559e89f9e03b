"""Search of one generation: all of its segments at once, by the native core."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array, UInt8Array
from hiernorm.certificate import Certificate, read_stats
from hiernorm.filters import Where
from hiernorm.hits import Hits, RangeHits
from hiernorm.payload.answers import payload_of_hits
from hiernorm.settings import EXACT
from hiernorm.storage.payload import StatePayload
from hiernorm.storage.selection import select
from hiernorm.storage.state import State


def search_state(
    state: State,
    queries: Float32Array,
    k: int,
    *,
    where: Where | None,
    beta: float,
    threads: int,
    batch_size: int,
    known: Hits | None,
    digest: Callable[[], str],
) -> Hits:
    """The k best entries of each query; parameters as the core takes them, already checked.

    ``digest`` is called when a certificate is asked for the digest of the database.
    """
    masks, allowed = _filter(state, where)
    known_ids, known_scores = (None, None) if known is None else known.checked(len(queries), k)
    indexes = state.indexes
    try:
        ids, scores, stats = _core.search_segments(
            indexes,
            masks,
            allowed,
            queries,
            k,
            beta,
            threads,
            batch_size,
            known_ids,
            known_scores,
        )
    except _core.DamagedBlockError:
        raise state.damage() from None
    metric = state.manifest.parameters.metric
    payload = payload_of_hits(StatePayload(state))
    return Hits(ids, scores, stats, sum(allowed), digest, metric, payload, state.checked)


def search_exhaustively(
    state: State, queries: Float32Array, k: int, *, where: Where | None, threads: int
) -> tuple[Int64Array, Float64Array, int]:
    """Ids and scores of the k best, from every row and without codes; and how many rows."""
    masks, allowed = _filter(state, where)
    indexes = [view.segment.without_codes() for view in state.views]
    try:
        ids, scores, _ = _core.search_segments(
            indexes, masks, allowed, queries, k, EXACT, threads, 0, None, None
        )
    except _core.DamagedBlockError:
        raise state.damage() from None
    return ids, scores, sum(allowed)


def search_range(
    state: State,
    queries: Float32Array,
    threshold: float,
    *,
    where: Where | None,
    threads: int,
    digest: Callable[[], str],
) -> RangeHits:
    """Every entry with score >= threshold; ``digest`` as for :func:`search_state`."""
    masks, allowed = _filter(state, where)
    indexes = state.indexes
    try:
        offsets, ids, scores, stats = _core.range_segments(
            indexes, masks, allowed, queries, threshold, threads
        )
    except _core.DamagedBlockError:
        raise state.damage() from None
    kth_score = np.full(len(queries), threshold)
    work, skipped_bound = read_stats(stats)
    certificate = Certificate(
        sum(allowed), work, kth_score, skipped_bound, digest, checked=state.checked
    )
    metric, payload = state.manifest.parameters.metric, payload_of_hits(StatePayload(state))
    return RangeHits(offsets, ids, scores, certificate, metric, payload)


def _filter(state: State, where: Where | None) -> tuple[list[UInt8Array | None], list[int]]:
    """For each segment, which entries may be returned and how many these are."""
    if where is None:
        return state.masks, state.allowed
    selection = select(state, where)
    return selection.masks, selection.allowed

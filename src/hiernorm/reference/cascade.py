"""The cascade: exact search in steps that each read more of fewer entries.

``cascade_search`` takes one query through the steps of ``cpp/core/search/cascade.cpp``, in its
order and its arithmetic. It returns the answer, and the counts and the bound of the certificate:
the same bits that :meth:`hiernorm.Index.search` gives for one query at a time. It reads what an
index or a segment file holds (``docs/reference/format.md``): the encoding and the tensors of codes.

===========  =====================================  ===========================================
step         reads per entry                        rules out by
===========  =====================================  ===========================================
skip cells   nothing: cones of many entries         the angle between query and cone
scan         the major's codes                      an integer score that is not above the cut
seed         the rows of the first best majors      (gives the threshold that makes the cut)
sift         nothing: the scores of the scan        the threshold reached since
tighten      the minor's codes, stage by stage      the bound of major and minor codes
weigh        the row's major                        its exact product instead of that of the codes
settle       the float32 row                        the canonical score
===========  =====================================  ===========================================

``docs/concepts/exactness.md`` proves the bounds.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiernorm.reference.canonical import (
    Float32Array,
    Float64Array,
    Int64Array,
    canonical_dot,
    canonical_norm,
    canonical_scores,
    rank,
)
from hiernorm.reference.cells import BLOCK, RANGE, Cells
from hiernorm.reference.query import LOWEST, OFFSET, Norms, Query, rows_of

TILE = 2048
"""Entries that share one set of norms."""
MORE_SEEDS = 2
"""Seeds from cells beyond those that are wanted."""
BLOCKS_POOLED, BLOCKS_PER_SEED = 4, 2
"""Blocks whose best major decides of which entries the minor is read to find the seeds."""

Tensors = Mapping[str, npt.NDArray[Any]]


class Answer(NamedTuple):
    """Hits, best first, and what the certificate says of them."""

    ids: Int64Array
    scores: Float64Array
    work: dict[str, int]
    skipped_bound: float


def cascade_search(
    q: Float32Array,
    encoding: Mapping[str, Any],
    tensors: Tensors,
    k: int,
    *,
    cells: bool = True,
) -> Answer:
    """The k best entries for ``q`` ``(d,)``, by the cascade.

    Parameters
    ----------
    encoding
        Steps of the codes and the like: ``fit`` in the header of a segment file.
    tensors
        The tensors of the file by name. Their entries were added at once.
    cells
        Whether to use the cones, if there are any.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> x = hiernorm.normalize(np.random.default_rng(0).standard_normal((500, 32)), 8, 1/8)
    >>> index = hiernorm.Index(dim=32, major=8, alpha=1/8)
    >>> index.add(x)
    500
    >>> core = index._core
    >>> answer = cascade_search(x[3], core.encoding().state(), core.tensors(), k=2)
    >>> hits = index.search(x[3], k=2, batch_size=1)
    >>> answer.ids.tolist() == hits.ids[0].tolist()
    True
    >>> answer.work["sifted"] == hits.certificate[0].sifted
    True
    """
    search = _Cascade(q, encoding, tensors, k)
    if cells and "cones_16" in tensors:
        search.seed_from_cells()
    for first in range(0, search.entries, RANGE):
        blocks = search.skip_cells(first)
        logged = []
        for tile in range(first, min(first + RANGE, search.entries), TILE):
            if search.missing:
                candidates = search.seed_from_tile(tile)
            else:
                candidates = search.scan(tile, blocks)
            logged.append((tile, candidates))
        for tile, candidates in logged:
            candidates = search.sift(tile, candidates)
            candidates, bounds = search.tighten(tile, candidates)
            search.weigh(tile, candidates, bounds)
    search.settle_finalists()
    return search.answer()


class _Cascade:
    """One query on its way through the steps."""

    def __init__(
        self, q: Float32Array, encoding: Mapping[str, Any], tensors: Tensors, k: int
    ) -> None:
        self.q, self.k, self.tensors = q, k, tensors
        self.metric, self.entries = encoding["metric"], len(tensors["ids"])
        self.query = Query(q, encoding, tensors)
        self.norms = [Norms(*row) for row in tensors["norms"].tolist()]
        self.majors, self.scores = self.query.score_majors(tensors["major_codes"])
        self.prefix = "rotation" not in tensors
        self.threshold, self.skipped_bound = -np.inf, -np.inf
        self.settled: dict[int, float] = {}
        self.finalists: list[tuple[float, int]] = []
        self.seeds: set[int] = set()
        self.seeded = self.found_again = self.weighed_in = 0
        self.left = self.scanned = self.sifted = 0
        self.cells: Cells | None = None

    @property
    def missing(self) -> int:
        """Entries to settle before there is a threshold."""
        return max(self.k - len(self.settled), 0)

    def settle(self, position: int) -> None:
        """The canonical score of an entry; it may raise the threshold."""
        row = self.tensors["rows"][position : position + 1]
        self.settled[position] = float(canonical_scores(self.q, row, self.metric)[0])
        if not self.missing:
            kth_score = heapq.nlargest(self.k, self.settled.values())[-1]
            self.threshold = kth_score + self.query.offset

    def skip(self, bounds: Float64Array | float) -> None:
        """Entries are ruled out by these bounds."""
        self.skipped_bound = max(self.skipped_bound, np.max(bounds, initial=-np.inf))

    def slack(self, tile: int) -> float:
        """What an entry can have beyond its score."""
        norms = self.norms[tile // TILE]
        return self.query.coded_slack(norms) + self.query.tail_slack(norms)

    def cut(self, tile: int) -> int:
        """The score that an entry must exceed."""
        return self.query.cut(self.threshold, self.slack(tile))

    def skip_scores(self, tile: int, scores: Int64Array) -> None:
        """Entries of a tile are ruled out by these scores."""
        self.skip(self.query.scale * scores + self.slack(tile))

    def seed_from_cells(self) -> None:
        """Settle the best entries, by their codes, of the blocks that point the query's way."""
        self.cells = Cells(self.query, self.tensors)
        wanted = self.k + MORE_SEEDS
        near = self.cells.nearest(wanted)
        _, firsts = np.unique(near // BLOCK, return_index=True)
        largest = np.sort(np.maximum.reduceat(self.scores[near], firsts))[::-1]
        blocks = BLOCKS_POOLED * self.cells.effort + BLOCKS_PER_SEED * wanted
        pool = near[self.scores[near] >= largest[min(blocks, len(largest)) - 1]]
        if len(pool) < self.k:
            return
        _, bounds = self._read_minors(self.query.largest, pool, -np.inf, stages=1)
        best = pool[np.argsort(-bounds, kind="stable")[:wanted]]
        self.seeds, self.seeded = set(best.tolist()), len(best)
        for position in best.tolist():
            self.settle(position)

    def skip_cells(self, first: int) -> Int64Array | None:
        """The blocks of a range that can hold an entry which reaches the threshold; None: all."""
        if self.cells is None or self.missing:
            return None
        blocks, skipped = self.cells.skip(first, self.threshold)
        if skipped:
            self.skip(np.nextafter(self.threshold, -np.inf))
        self.left += 0 if blocks is None else len(blocks)
        return blocks

    def scan(self, tile: int, blocks: Int64Array | None) -> Int64Array:
        """The entries of a tile, or of some blocks, whose score is above the cut."""
        read = np.arange(tile, min(tile + TILE, self.entries))
        if blocks is not None:
            read = read[np.isin(read // BLOCK, blocks)]
        self.scanned += len(read)
        cut = self.cut(tile)
        candidates = read[self.scores[read] > cut]
        if len(candidates) < len(read) and cut != LOWEST:
            self.skip_scores(tile, np.array([cut]))
        return candidates

    def seed_from_tile(self, tile: int) -> Int64Array:
        """Settle the best majors of a tile; the others above the cut that this gives."""
        read = np.arange(tile, min(tile + TILE, self.entries))
        self.scanned += len(read)
        scores, wanted = self.scores[read], min(self.missing, len(read))
        bar = np.sort(scores)[len(read) - wanted]
        best = read[scores >= bar][: self.missing]
        for position in best.tolist():
            self.settle(position)
        self.seeded += len(best)
        if wanted == len(read):
            return read[:0]
        others = read[~np.isin(read, best)]
        above = self.scores[others] > self.cut(tile)
        self.skip_scores(tile, self.scores[others[~above]])
        return others[above]

    def sift(self, tile: int, candidates: Int64Array) -> Int64Array:
        """The candidates that are above the cut still."""
        above = self.scores[candidates] > self.cut(tile)
        self.skip_scores(tile, self.scores[candidates[~above]])
        self.sifted += int(above.sum())
        return candidates[above]

    def _reads_minor(self, norms: Norms) -> bool:
        unequal = self.query.tails or "rotation" in self.tensors
        return unequal or self.query.tail_slack(norms) >= self.query.coded_slack(norms)

    def tighten(self, tile: int, candidates: Int64Array) -> tuple[Int64Array, Float64Array]:
        """The candidates whose bound after each stage reaches the threshold, and the last bound."""
        return self._read_minors(self.norms[tile // TILE], candidates, self.threshold)

    def _read_minors(
        self,
        norms: Norms,
        candidates: Int64Array,
        threshold: float,
        stages: int | None = None,
    ) -> tuple[Int64Array, Float64Array]:
        """The same for any threshold, for entries that have at most these norms."""
        query = self.query
        if not self._reads_minor(norms):
            slack = query.coded_slack(norms) + query.tail_slack(norms)
            return candidates, query.scale * self.majors[candidates] + slack
        base = query.coded_slack(norms) + query.minor_slack(norms)
        minors = np.zeros(len(candidates), np.int64)
        bounds = np.zeros(len(candidates))
        for stage, codes in enumerate(query.stage_codes[:stages]):
            rows = self.tensors[f"minor_codes.{stage}"][candidates].astype(np.int64)
            minors = minors + (rows[:, : len(codes)] - OFFSET) @ codes
            bounds = base + query.scale * self.majors[candidates] + query.minor_scale * minors
            if stage + 1 < len(query.stage_codes):
                bounds = bounds + query.stage_tails[stage] * rows[:, -1]
            left = bounds >= threshold
            self.skip(bounds[~left])
            candidates, minors, bounds = candidates[left], minors[left], bounds[left]
        return candidates, bounds

    def weigh(self, tile: int, candidates: Int64Array, bounds: Float64Array) -> None:
        """Bound by the exact major where it is a prefix; settle what is certain to be a hit."""
        query, norms = self.query, self.norms[tile // TILE]
        read = self._reads_minor(norms)
        slack = query.minor_slack(norms) if read else query.tail_slack(norms)
        width = 2.0 * (slack + query.coded_slack(norms))
        for position, bound in zip(candidates.tolist(), bounds.tolist(), strict=True):
            if position in self.seeds:
                self.found_again += 1
                continue
            if self.prefix:
                margin = query.margin * norms.norm
                if self.metric == "l2":  # the lift is known by its code only
                    margin += query.encoding["weight"] * norms.major_residual
                coded = query.scale * int(self.majors[position]) + query.coded_slack(norms)
                bound = bound - coded + self._major_product(position) + margin
                width = 2.0 * (slack + margin)
            if bound < self.threshold:
                self.skip(bound)
            elif bound - width > self.threshold:
                self.settle(position)
                self.weighed_in += 1
            else:
                self.finalists.append((-bound, position))

    def _major_product(self, position: int) -> float:
        row = self.tensors["rows"][position : position + 1]
        encoding, major = self.query.encoding, self.query.major
        if self.metric == "l2":
            product = canonical_dot(self.q[: major - 1], row[:, : major - 1])
            block = rows_of(self.tensors["major_codes"][[position // BLOCK]])
            code = int(block[position % BLOCK, major - 1]) - OFFSET
            return float(2.0 * product[0] + encoding["weight"] * (encoding["major_step"] * code))
        product = canonical_dot(self.q[:major], row[:, :major])
        if self.metric == "cosine":
            product = product / (canonical_norm(self.q[np.newaxis]) * canonical_norm(row))
        return float(product[0])

    def settle_finalists(self) -> None:
        """Settle the best bounds first, until no bound reaches the threshold."""
        for minus_bound, position in sorted(self.finalists):
            if -minus_bound < self.threshold:
                self.skip(-minus_bound)
                break
            self.settle(position)

    def answer(self) -> Answer:
        """The k best of what was settled."""
        positions = np.array(list(self.settled), np.int64)
        scores = np.array(list(self.settled.values()))
        ids = self.tensors["ids"][positions]
        best = rank(scores, ids)[: self.k]
        work = {
            "cells": self.left,
            "scanned": self.scanned,
            "sifted": min(self.sifted + self.seeded - self.found_again, self.entries),
            "tightened": len(self.finalists) + self.weighed_in + self.seeded,
            "settled": len(self.settled),
        }
        # What was skipped was proved to score below the threshold, however it is rounded.
        kth_score = scores[best[-1]] if len(best) == self.k else -np.inf
        below = float(np.nextafter(kth_score, -np.inf))
        return Answer(
            ids[best], scores[best], work, min(self.skipped_bound - self.query.offset, below)
        )

"""What the matches in a database miss and add, against exact matching."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.adapters.colmap.matcher import (
    MEMORY,
    ImageIndexes,
    common_type,
    in_blocks,
    match_pairs,
)
from hiernorm.adapters.colmap.options import MatchingOptions
from hiernorm.adapters.colmap.pairing import exhaustive_pairs
from hiernorm.adapters.colmap.records import Pair, pair_id
from hiernorm.array_types import Int64Array
from hiernorm.progress import ProgressCallback
from hiernorm.threads import thread_count


@dataclass(frozen=True)
class PairComparison:
    """The stored and the exact matches of a pair.

    Attributes
    ----------
    pair
        Ids of the images.
    names
        Their names.
    both, missed, added : (m, 2) int64
        Matches that are stored and exact; exact but not stored; stored but not exact.
    """

    pair: Pair
    names: tuple[str, str]
    both: Int64Array
    missed: Int64Array
    added: Int64Array

    @property
    def exact(self) -> int:
        """The number of exact matches."""
        return len(self.both) + len(self.missed)


@dataclass(frozen=True)
class Comparison:
    """The comparison of all pairs that have matches stored."""

    pairs: list[PairComparison]

    @property
    def exact(self) -> int:
        """The number of exact matches of all pairs."""
        return sum(pair.exact for pair in self.pairs)

    @property
    def missed(self) -> int:
        """The number of exact matches that are not stored."""
        return sum(len(pair.missed) for pair in self.pairs)

    @property
    def added(self) -> int:
        """The number of stored matches that are not exact."""
        return sum(len(pair.added) for pair in self.pairs)


def compare_matches(
    path: Path | str,
    options: MatchingOptions | None = None,
    *,
    pairs: Iterable[Pair] | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Compare the stored matches of a database with exact ones; the database is only read.

    Parameters
    ----------
    path
        A database of COLMAP with descriptors and matches.
    options
        What the matches were made with; None for the defaults of the descriptors' type.
    pairs
        Pairs to compare; None for all that have matches stored.
    threads, memory, progress
        As in :func:`match_database`.
    """
    workers = thread_count(threads)
    with ColmapDatabase(path) as database:
        images = database.images()
        names = {image.image_id: image.name for image in images}
        stored = database.matched_pairs()
        asked = exhaustive_pairs(images) if pairs is None else pairs
        wanted = in_blocks([pair for pair in asked if pair_id(pair) in stored])
        kind = common_type(database, wanted)
        rules = options or MatchingOptions.for_type(kind)
        indexes = ImageIndexes(database, kind, memory, workers)
        compared = []
        with closing(match_pairs(indexes, wanted, rules, workers)) as matched:
            for pair, exact in matched:
                before = database.matches(pair)
                assert before is not None
                compared.append(
                    PairComparison(
                        pair,
                        (names[pair[0]], names[pair[1]]),
                        *_compare(exact, before.astype(np.int64)),
                    )
                )
                if progress is not None:
                    progress(len(compared), len(wanted))
    return Comparison(sorted(compared, key=lambda one: one.pair))


def _compare(exact: Int64Array, stored: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Rows of both; of ``exact`` only; of ``stored`` only."""
    width = 1 + max((int(rows.max()) for rows in (exact, stored) if len(rows)), default=0)
    keys = [rows[:, 0] * width + rows[:, 1] for rows in (exact, stored)]
    shared = np.isin(keys[0], keys[1])
    return exact[shared], exact[~shared], stored[~np.isin(keys[1], keys[0])]

"""Exact matching of the images of a COLMAP database."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np

from hiernorm.adapters.colmap.database import WAIT_SECONDS, ColmapDatabase
from hiernorm.adapters.colmap.locking import one_writer
from hiernorm.adapters.colmap.options import DescriptorType, MatchingOptions
from hiernorm.adapters.colmap.pair_work import COMMIT_SECONDS, in_batches, side_by_side
from hiernorm.adapters.colmap.pairing import exhaustive_pairs
from hiernorm.adapters.colmap.records import Pair, pair_id
from hiernorm.array_types import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    UInt8Array,
)
from hiernorm.byte_matching import ByteDescriptors, ByteRotation, match_bytes
from hiernorm.matching import DescriptorSet
from hiernorm.progress import ProgressCallback
from hiernorm.threads import thread_count

MEMORY = 2**30
"""Bytes of indexes that are kept, unless another limit is given."""
BLOCK_IMAGES = 32
"""Pairs are matched in blocks of this many images by as many, so that indexes are used again."""
SAMPLE_IMAGES = 8
"""Images that the rotation of byte descriptors is fitted to."""
SAMPLE_ROWS = 512
"""Descriptors of each of them."""

Indexed = ByteDescriptors | DescriptorSet


@dataclass(frozen=True)
class MatchingReport:
    """What :func:`match_database` did.

    Attributes
    ----------
    matched
        Pairs that were matched now.
    kept
        Pairs that had matches already and were left as they are.
    matches
        Number of matches of the pairs that were matched now.
    seconds
        Wall time of the matching.
    """

    matched: int
    kept: int
    matches: int
    seconds: float


def match_database(
    path: Path | str,
    pairs: Iterable[Pair] | None = None,
    options: MatchingOptions | None = None,
    *,
    replace: bool = False,
    threads: int | None = None,
    memory: int = MEMORY,
    wait_seconds: float = WAIT_SECONDS,
    progress: ProgressCallback | None = None,
) -> MatchingReport:
    """Match pairs of images exactly and write their matches as COLMAP does.

    A call that was interrupted is continued by calling again: pairs with matches are kept. For SIFT
    the matches equal those of COLMAP's brute-force matcher.

    Parameters
    ----------
    path
        A database of COLMAP with descriptors.
    pairs
        Image ids; None for all pairs.
    options
        None for the defaults of the descriptors' type (:meth:`MatchingOptions.for_type`).
    replace
        Whether pairs that have matches are matched again. Each keeps its former matches until its
        new ones are written. A call that was interrupted begins from the start when it is called
        again.
    threads
        As for :class:`hiernorm.Index`. Pairs are matched side by side.
    memory
        Bytes of indexes that are kept between pairs; one pair is always possible.
    wait_seconds
        How long to wait for another process that matches, verifies or writes.
    progress
        Called with the pairs done and their number.
    """
    start = time.perf_counter()
    workers = thread_count(threads)
    with (
        ColmapDatabase(path, writable=True, wait_seconds=wait_seconds) as database,
        one_writer(path, wait_seconds),
    ):
        images = database.images()
        wanted = list(dict.fromkeys(exhaustive_pairs(images) if pairs is None else pairs))
        kind = common_type(database, wanted)
        rules = options or MatchingOptions.for_type(kind)
        done = set() if replace else database.matched_pairs()
        todo = in_blocks([pair for pair in wanted if pair_id(pair) not in done])
        indexes = ImageIndexes(database, kind, memory, workers)
        total = 0
        with (
            in_batches(database.write_matches, COMMIT_SECONDS) as add,
            closing(match_pairs(indexes, todo, rules, workers)) as matched,
        ):
            for count, (pair, found) in enumerate(matched, start=1):
                total += len(found)
                add(pair, found)
                if progress is not None:
                    progress(count, len(todo))
    return MatchingReport(len(todo), len(wanted) - len(todo), total, time.perf_counter() - start)


def common_type(database: ColmapDatabase, pairs: Sequence[Pair]) -> DescriptorType:
    """The one type of the descriptors of all images of ``pairs``.

    Raises if there are several types or widths, or if the descriptors of an image are damaged.
    """
    kinds: dict[DescriptorType, int] = {}
    widths: dict[int, int] = {}
    for image in sorted({image for pair in pairs for image in pair}):
        kinds.setdefault(database.descriptor_type(image), image)
        rows, width = database.descriptor_shape(image)
        if rows:
            widths.setdefault(width, image)
    advice = "extract the features of all images in one way, or pass pairs of one"
    if len(kinds) > 1:
        held = ", ".join(f"{kind.name} ({database.name(image)})" for kind, image in kinds.items())
        raise ValueError(
            f"descriptors of different types cannot be matched, found {held}: {advice} type"
        )
    if len(widths) > 1:
        held = ", ".join(f"{width} ({database.name(image)})" for width, image in widths.items())
        raise ValueError(
            f"descriptors of different dimensions cannot be matched, found {held}: {advice} width"
        )
    return next(iter(kinds), DescriptorType.SIFT)


def in_blocks(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs ordered so that those of the same :data:`BLOCK_IMAGES` images follow each other.

    Examples
    --------
    >>> in_blocks([(1, 2), (1, 900), (2, 3)])
    [(1, 2), (2, 3), (1, 900)]
    """
    return sorted(pairs, key=lambda pair: (*(image // BLOCK_IMAGES for image in pair), *pair))


class ImageIndexes:
    """The indexes of images, made when they are first asked for and kept within a memory limit."""

    def __init__(
        self, database: ColmapDatabase, kind: DescriptorType, memory: int, threads: int
    ) -> None:
        self._database = database
        self._kind = kind
        self._memory = memory
        self._threads = threads
        self._kept: OrderedDict[int, Indexed] = OrderedDict()
        self._lock = Lock()
        self._rotation: ByteRotation | None = None

    def get(self, image: int) -> Indexed:
        """The index of an image."""
        with self._lock:
            if image not in self._kept:
                self._kept[image] = self._make(image)
                while len(self._kept) > 2 and self._bytes() > self._memory:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(image)
            return self._kept[image]

    def _make(self, image: int) -> Indexed:
        rows = self._database.descriptors(image)
        if self._kind != DescriptorType.SIFT:
            made = DescriptorSet(rows, threads=self._threads)
            if len(made):
                made.index  # noqa: B018  (built here, by one thread)
            return made
        if self._rotation is None:
            self._rotation = ByteRotation(self._sample(rows.shape[1]))
        return ByteDescriptors(rows, self._rotation)

    def _sample(self, dim: int) -> UInt8Array:
        """Descriptors of some images."""
        images = [i.image_id for i in self._database.images() if i.descriptors]
        step = max(1, len(images) // SAMPLE_IMAGES)
        parts: list[AnyArray] = [np.zeros((0, dim), np.uint8)]
        for image in images[::step][:SAMPLE_IMAGES]:
            rows = self._database.descriptors(image)
            if rows.dtype == np.uint8 and rows.shape[1] == dim:
                parts.append(rows[:: max(1, len(rows) // SAMPLE_ROWS)][:SAMPLE_ROWS])
        return np.concatenate(parts)

    def _bytes(self) -> int:
        return sum(
            kept.nbytes if isinstance(kept, ByteDescriptors) else kept.rows.nbytes * 2
            for kept in self._kept.values()
        )


def match_pairs(
    indexes: ImageIndexes, pairs: Sequence[Pair], options: MatchingOptions, threads: int
) -> Generator[tuple[Pair, Int64Array], None, None]:
    """Match pairs side by side; yields each with its matches ``(m, 2)``, in the order of pairs."""
    if len(pairs) < threads or threads == 1:
        for pair in pairs:
            yield pair, match_pair(indexes, pair, options, threads)
        return
    yield from side_by_side(lambda pair: match_pair(indexes, pair, options, 1), pairs, threads)


def match_pair(
    indexes: ImageIndexes, pair: Pair, options: MatchingOptions, threads: int
) -> Int64Array:
    """The matches of one pair; none if there are fewer than ``options.min_num_inliers``."""
    first, second = (indexes.get(image) for image in pair)
    if len(first) == 0 or len(second) == 0:
        return np.empty((0, 2), np.int64)
    if isinstance(first, ByteDescriptors) and isinstance(second, ByteDescriptors):
        found = match_bytes(
            first,
            second,
            max_ratio=options.max_ratio,
            max_distance=options.max_distance,
            cross_check=options.cross_check,
            threads=threads,
        ).pairs
    else:
        assert isinstance(first, DescriptorSet)
        assert isinstance(second, DescriptorSet)
        found = match_by_angle(first, second, options, threads)
    return found if len(found) >= options.min_num_inliers else found[:0]


def match_by_angle(
    a: DescriptorSet, b: DescriptorSet, options: MatchingOptions, threads: int | None = None
) -> Int64Array:
    """Matches ``(m, 2)`` of float32 unit vectors under the tests on angles; exact."""
    if a.rows.shape[1] != b.rows.shape[1]:
        raise ValueError(f"a has {a.rows.shape[1]} dimensions, b has {b.rows.shape[1]}")
    found, won = _best_of(a.rows, b, options, threads)
    kept = np.flatnonzero(won)
    if options.cross_check and len(kept):
        asked, where = np.unique(found[kept], return_inverse=True)
        back, back_won = _best_of(b.rows[asked], a, options, threads)
        kept = kept[(back[where] == kept) & back_won[where]]
    return np.column_stack((kept, found[kept]))


def _best_of(
    queries: Float32Array, others: DescriptorSet, options: MatchingOptions, threads: int | None
) -> tuple[Int64Array, BoolArray]:
    """The nearest of each query, and whether it passes the tests."""
    hits = others.index.search(queries, min(2, len(others)), threads=threads)
    angles: Float64Array = np.arccos(np.clip(hits.scores, -1, 1))
    second = angles[:, 1] if angles.shape[1] > 1 else np.full(len(angles), np.pi / 2)
    won = (angles[:, 0] <= options.max_distance) & (angles[:, 0] < options.max_ratio * second)
    return hits.ids[:, 0], won

"""Matching of two descriptor sets: nearest, mutual and ratio-tested pairs, exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_float32
from hiernorm.index import Index
from hiernorm.nearest_rows import HN_PAIRS, PLAIN_PAIRS, Nearest, nearest_rows, prefers_pass
from hiernorm.settings import Metric

RATIO = 0.9
"""Threshold of the ratio test, unless another is asked for."""
UNIT_TOLERANCE = 1e-5
"""How far from 1 a length may be in the ratio test of inner products."""
SAMPLE_ROWS = 64
"""Rows that are checked for an HN split."""
PLAIN_MAJOR = 47
"""Size of the major of few plain vectors; with the tail norm it fills 48 bytes."""
FEW_ROWS = 20_000
"""With fewer rows, choosing the major from the data takes longer than it saves."""


@dataclass(frozen=True)
class Matches:
    """Pairs of rows, in the order of the first set.

    Attributes
    ----------
    pairs : (n, 2) int64
        Row of the first set, row of the second.
    scores : (n,) float64
        Their canonical scores.
    ratios : (n,) float64
        Distance to the nearest over distance to the second nearest (of mutual matches: the larger
        one of both directions); NaN where no ratio was asked for.
    """

    pairs: Int64Array
    scores: Float64Array
    ratios: Float64Array

    def __len__(self) -> int:
        return len(self.pairs)


class DescriptorSet:
    """Descriptors whose index is built once, for sets that are matched with many others.

    Parameters
    ----------
    rows
        ``(n, d)`` descriptors; anything but float32 is rounded to float32 first.
    metric, threads
        As for :class:`hiernorm.Index`.

    Examples
    --------
    >>> import numpy as np
    >>> from hiernorm.matching import DescriptorSet, match_descriptors
    >>> photos = [DescriptorSet(np.eye(3, dtype=np.float32)[rows]) for rows in ([0, 1], [2, 1])]
    >>> match_descriptors(*photos).pairs.tolist()
    [[1, 1]]
    """

    def __init__(
        self, rows: npt.ArrayLike, metric: Metric = "ip", *, threads: int | None = None
    ) -> None:
        self.rows = _checked_rows("rows", rows)
        self.metric = metric
        self._threads = threads

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def is_hn(self) -> bool:
        """Whether the rows look like HN vectors."""
        return self.metric != "cosine" and _find_split(self.rows)[1] is not None

    @cached_property
    def index(self) -> Index:
        """The index of the rows, their numbers as ids."""
        index = _index_for(self.rows, self.metric, self._threads)
        index.add(self.rows)
        return index


def match_descriptors(
    a: npt.ArrayLike | DescriptorSet,
    b: npt.ArrayLike | DescriptorSet,
    mutual: bool = True,
    ratio: float | None = RATIO,
    min_score: float | None = None,
    *,
    metric: Metric = "ip",
    threads: int | None = None,
) -> Matches:
    """Match each row of ``a`` with its nearest row of ``b``.

    Exact and deterministic: nearest is by (canonical score descending, row ascending), as in
    :class:`hiernorm.Index`, for any number of threads and any instruction set. The matrix of scores
    is never stored: memory grows with the number of rows, not with their product.

    ================  =========================  =============================================
    ``mutual=``       ``ratio=None``             ``ratio=r``
    ================  =========================  =============================================
    ``False``         nearest (kornia            passes the ratio test (kornia ``match_snn``,
                      ``match_nn``)              OpenCV ``knnMatch`` with Lowe's test)
    ``True``          nearest of each other      passes it in both directions (kornia
                      (kornia ``match_mnn``,     ``match_smnn``)
                      OpenCV ``crossCheck``)
    ================  =========================  =============================================

    Parameters
    ----------
    a, b
        ``(n, d)`` and ``(m, d)`` descriptors; anything but float32 is rounded to float32 first.
        A :class:`DescriptorSet` keeps its index, and is worth making for a set that is matched
        more than once; its metric is the one that counts.
    mutual
        Keep a pair only if each is the nearest of the other.
    ratio
        Keep a pair only if the nearest is at most this share of the second nearest's Euclidean
        distance away; above 0, at most 1. Needs a second row. None for no ratio test.
    min_score
        Keep a pair only if its score reaches this.
    metric
        ``"ip"``, ``"cosine"`` or ``"l2"``, as in :class:`hiernorm.Index`. For unit vectors all
        three order as the Euclidean distance does; for others, such as OpenCV's SIFT, kornia and
        OpenCV match by ``"l2"``.
    threads
        As for :class:`hiernorm.Index`.

    Returns
    -------
    Matches, in the order of ``a``.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> a = np.float32([[1, 0], [0, 1], [0.6, 0.8]])
    >>> b = np.float32([[0, 1], [0.8, 0.6]])
    >>> hiernorm.match_descriptors(a, b, mutual=False, ratio=None).pairs.tolist()
    [[0, 1], [1, 0], [2, 1]]
    >>> hiernorm.match_descriptors(a, b, ratio=None).pairs.tolist()
    [[1, 0], [2, 1]]
    >>> hiernorm.match_descriptors(a, b).pairs.tolist()
    [[1, 0], [2, 1]]
    >>> hiernorm.match_descriptors(a, b, min_score=0.97).pairs.tolist()
    [[1, 0]]
    """
    left = a if isinstance(a, DescriptorSet) else _Unkept("a", a, metric, threads)
    right = b if isinstance(b, DescriptorSet) else _Unkept("b", b, metric, threads)
    metric = _check_sets(left, right, ratio, min_score)
    first, second = left.rows, right.rows
    neighbours = 1 if ratio is None else 2
    if len(first) == 0 or len(second) < neighbours or (mutual and len(first) < neighbours):
        return Matches(np.empty((0, 2), np.int64), np.empty(0), np.empty(0))
    directions = 2 if mutual else 1
    few = len(first) * len(second) <= directions * (HN_PAIRS if left.is_hn else PLAIN_PAIRS)
    if few or prefers_pass(right.index, first, neighbours, directions):
        wanted = right._threads if threads is None else threads
        there, back = nearest_rows(first, second, neighbours, metric, both=mutual, threads=wanted)
    else:
        there, back = Nearest(*right.index.search(first, neighbours, threads=threads)), None
    found, scores = there
    kept = np.arange(len(first))
    ratios = np.full(len(first), np.nan)
    if ratio is not None:
        ratios = _ratios(first, second, found, scores, metric)
        kept = kept[ratios <= ratio]
    if min_score is not None:
        kept = kept[scores[kept, 0] >= min_score]
    if mutual and len(kept):
        # Only rows of b that are the nearest of some row of a are searched in a.
        asked, where = np.unique(found[kept, 0], return_inverse=True)
        if back is None:
            nearest = _search_in(left, right, asked, neighbours, threads)
        else:
            nearest = Nearest(back.ids[asked], back.scores[asked])
        agree = nearest.ids[where, 0] == kept
        if ratio is not None:
            reverse = _ratios(second[asked], first, nearest.ids, nearest.scores, metric)[where]
            agree &= reverse <= ratio
            ratios[kept] = np.maximum(ratios[kept], reverse)
        kept = kept[agree]
    return Matches(np.column_stack((kept, found[kept, 0])), scores[kept, 0], ratios[kept])


def _search_in(
    left: DescriptorSet, right: DescriptorSet, asked: Int64Array, k: int, threads: int | None
) -> Nearest:
    """The nearest rows of ``left`` for some rows of ``right``."""
    if isinstance(left, _Unkept):
        index = right.index._sibling()  # a second fit would cost more than it gains
        index.add(left.rows)
    else:
        index = left.index
    return Nearest(*index.search(right.rows[asked], k, threads=threads))


class _Unkept(DescriptorSet):
    """A set that is matched once."""

    def __init__(self, name: str, rows: npt.ArrayLike, metric: Metric, threads: int | None) -> None:
        self.rows = _checked_rows(name, rows)
        self.metric = metric
        self._threads = threads


def _checked_rows(name: str, rows: npt.ArrayLike) -> Float32Array:
    """The rows as finite float32 ``(n, d)``."""
    checked = as_float32(name, rows)
    if checked.ndim != 2:
        raise ValueError(f"{name} must have the shape (n, d), got {checked.shape}")
    finite = np.isfinite(checked).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name} row {int(np.argmin(finite))} has NaN or infinity")
    return checked


def _check_sets(
    a: DescriptorSet, b: DescriptorSet, ratio: float | None, min_score: float | None
) -> Metric:
    """Raise unless both sets are fit for what is asked; return their metric."""
    if a.rows.shape[1] != b.rows.shape[1]:
        raise ValueError(f"a has {a.rows.shape[1]} dimensions, b has {b.rows.shape[1]}")
    if a.metric != b.metric:
        raise ValueError(f"a has the metric {a.metric!r}, b has {b.metric!r}")
    if min_score is not None and np.isnan(min_score):
        raise ValueError("min_score must be a number, got NaN")
    if ratio is not None:
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {ratio}")
        if a.metric == "ip":
            _check_unit("a", a.rows)
            _check_unit("b", b.rows)
    return a.metric


def _check_unit(name: str, rows: Float32Array) -> None:
    """Raise unless all rows have length 1: only then is the best inner product the nearest."""
    lengths = np.sqrt(_core.square_lengths(rows))
    off = np.abs(lengths - 1) > UNIT_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"the ratio test of inner products needs unit vectors, {name} row {row} has length "
            f'{lengths[row]:.6g}: normalise them, use metric="l2", or ratio=None for no ratio test'
        )


def _index_for(rows: Float32Array, metric: Metric, threads: int | None) -> Index:
    """An empty index with the parameters that suit ``rows``."""
    major, alpha = _find_split(rows) if metric != "cosine" else (None, None)
    if alpha is None and rows.shape[1] > PLAIN_MAJOR and len(rows) < FEW_ROWS:
        major = PLAIN_MAJOR
    return Index(rows.shape[1], major=major, alpha=alpha, metric=metric, threads=threads)


def _find_split(rows: Float32Array) -> tuple[int | None, float | None]:
    """The K and alpha of HN vectors, or (None, None). A wrong guess costs time only.

    HN vectors of one split have the same energy in their first K dimensions; plain vectors do not.
    """
    sample = rows[:: max(1, len(rows) // SAMPLE_ROWS)][:SAMPLE_ROWS].astype(np.float64)
    energy = np.cumsum(np.square(sample), axis=1)[:, :-1]
    if len(sample) < 2 or energy.shape[1] == 0:
        return None, None
    spread = energy.max(axis=0) - energy.min(axis=0)
    major = int(np.argmin(spread)) + 1
    alpha = 1 - float(energy[0, major - 1])
    if spread[major - 1] > 1e-6 or not 0 < alpha < 1:
        return None, None
    return major, alpha


def _ratios(
    queries: Float32Array,
    rows: Float32Array,
    found: Int64Array,
    scores: Float64Array,
    metric: Metric,
) -> Float64Array:
    """Distance to the nearest over distance to the second; NaN if both are 0."""
    if metric == "l2":
        squares = -scores
    elif metric == "cosine":
        squares = 2 - 2 * scores
    else:
        # Exactly 0 for equal rows, whose score is the same canonical sum as their squared length.
        lengths = _core.square_lengths(rows)
        squares = _core.square_lengths(queries)[:, np.newaxis] + lengths[found]
        squares -= 2 * scores
    distances = np.sqrt(np.maximum(0.0, squares))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Float64Array = distances[:, 0] / distances[:, 1]
    return ratios

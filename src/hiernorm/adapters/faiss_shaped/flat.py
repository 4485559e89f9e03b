"""Flat indexes with FAISS's names: an id is the position of a vector."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.adapters.faiss_shaped.base import METRIC_INNER_PRODUCT, METRIC_L2, METRICS, Index
from hiernorm.adapters.faiss_shaped.errors import ArgumentError
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_ids


class IndexFlat(Index):
    """Exact search in place of ``faiss.IndexFlat``.

    Ids are positions: when entries are removed, those behind them move up. Differences from FAISS:
    scores are canonical, so the answer is the same on every machine, and ties go to the vector that
    was added first.

    Parameters
    ----------
    d
        Number of dimensions, at least 2.
    metric
        ``METRIC_L2`` (squared Euclidean distances) or ``METRIC_INNER_PRODUCT``.

    Examples
    --------
    >>> import numpy as np
    >>> import hiernorm.adapters.faiss_shaped as faiss
    >>> index = faiss.IndexFlatL2(2)
    >>> index.add(np.float32([[0, 0], [3, 4], [6, 8]]))
    >>> D, I = index.search(np.float32([[3, 4]]), 2)
    >>> D.tolist(), I.tolist()
    ([[0.0, 25.0]], [[1, 0]])
    >>> index.remove_ids(np.array([0])), index.search(np.float32([[3, 4]]), 2)[1].tolist()
    (1, [[0, 1]])
    """

    def __init__(self, d: int, metric: int = METRIC_L2) -> None:
        if metric not in METRICS and isinstance(metric, int):
            raise NotImplementedError(
                f"metric {metric} is not implemented: METRIC_INNER_PRODUCT and METRIC_L2 are"
            )
        super().__init__(d, metric)

    @property
    def code_size(self) -> int:
        """Bytes of a vector."""
        return 4 * self.d

    def sa_code_size(self) -> int:
        """Bytes of a vector."""
        return self.code_size

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """The bytes of all vectors ``(ntotal * code_size,)``: a copy."""
        return self.get_xb().view(np.uint8)

    def get_xb(self) -> Float32Array:
        """All vectors one after the other ``(ntotal * d,)``: a copy."""
        return self.reconstruct_n().reshape(-1)

    def add_with_ids(self, x: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Raise: ids are positions here, as in FAISS."""
        raise NotImplementedError(
            "add_with_ids not implemented for this type of index: "
            "use IndexIDMap(IndexFlat(d)), IndexIDMap2 or IndexHN"
        )

    def merge_from(self, other: Index, add_id: int = 0) -> None:
        """Move all entries of ``other`` behind those that are here."""
        self.check_compatible_for_merge(other)
        if add_id != 0:
            raise RuntimeError(f"ids are positions: add_id must be 0, got {add_id}")
        self.add(other.reconstruct_n())
        other.reset()

    def permute_entries(self, perm: npt.ArrayLike) -> None:
        """Reorder the vectors: the one at position ``perm[i]`` moves to i."""
        order = as_ids(perm)
        if not np.array_equal(np.sort(order), np.arange(self.ntotal)):
            raise ArgumentError(f"perm must hold each position below {self.ntotal} once")
        rows = self.reconstruct_batch(order)
        self.reset()
        self.add(rows)

    def _is_gapless(self) -> bool:
        """Whether nothing was removed, so that an entry's id is its position."""
        return self._index._next_id == self.ntotal

    def _labels(self) -> Int64Array:
        return np.arange(self.ntotal)

    def _labels_of(self, entries: Int64Array) -> Int64Array:
        if self._is_gapless():
            return entries
        return np.where(entries < 0, -1, np.searchsorted(self._entry_ids(), entries))

    def _entries_with(self, labels: Int64Array) -> Int64Array:
        outside = (labels < 0) | (labels >= self.ntotal)
        if outside.any():
            raise KeyError(
                f"position {labels[outside][0]} is not in the index of {self.ntotal} entries"
            )
        return labels if self._is_gapless() else self._entry_ids()[labels]


class IndexFlatL2(IndexFlat):
    """``IndexFlat(d, METRIC_L2)``: squared Euclidean distances, the smallest first."""

    def __init__(self, d: int) -> None:
        super().__init__(d, METRIC_L2)


class IndexFlatIP(IndexFlat):
    """``IndexFlat(d, METRIC_INNER_PRODUCT)``: inner products, the largest first."""

    def __init__(self, d: int) -> None:
        super().__init__(d, METRIC_INNER_PRODUCT)


def clone_index(index: Any) -> Any:
    """A copy of an index."""
    return copy.deepcopy(index)

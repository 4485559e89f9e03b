"""Indexes that give the vectors of a flat index ids of the user's choice."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt

import hiernorm.index
from hiernorm.adapters.faiss_shaped.base import Index
from hiernorm.adapters.faiss_shaped.errors import ArgumentError
from hiernorm.adapters.faiss_shaped.flat import IndexFlat
from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_ids


class IndexIDMap(Index):
    """Any int64 ids for the vectors of a flat index, as ``faiss.IndexIDMap``.

    An id may be given to several vectors; removal removes them all. Ties go to the vector that was
    added first. :class:`IndexIDMap2` also finds vectors by id.

    Parameters
    ----------
    index
        An empty :class:`IndexFlat`; it is :attr:`index` from then on, and has positions as ids.

    Examples
    --------
    >>> import numpy as np
    >>> import hiernorm.adapters.faiss_shaped as faiss
    >>> index = faiss.IndexIDMap(faiss.IndexFlatIP(2))
    >>> index.add_with_ids(np.float32([[1, 0], [0, 1]]), np.array([70, -5]))
    >>> index.search(np.float32([[0, 1]]), 2)[1].tolist()
    [[-5, 70]]
    """

    def __init__(self, index: IndexFlat) -> None:
        if not isinstance(index, IndexFlat):
            raise TypeError(
                f"index must be an IndexFlat, got {type(index).__name__}; "
                "an IndexHN has add_with_ids itself"
            )
        if index.ntotal:
            raise RuntimeError(f"index must be empty on input, it has {index.ntotal} entries")
        self.index = index
        self.d = index.d
        self.metric_type = index.metric_type
        self._pieces = [np.empty(0, np.int64)]

    @property
    def id_map(self) -> Int64Array:
        """The ids ``(ntotal,)`` in order of insertion."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]

    def add(self, x: npt.ArrayLike) -> NoReturn:
        """Raise: a vector needs an id."""
        raise NotImplementedError("add does not make sense with IndexIDMap, use add_with_ids")

    def add_with_ids(self, x: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add ``(n, d)`` vectors under ``(n,)`` ids."""
        rows = self._rows("vectors", x)
        try:
            given = as_ids(ids, len(rows))
        except ValueError as error:
            raise ArgumentError(*error.args) from None
        self.index.add(rows)
        self._pieces.append(given.copy())

    def merge_from(self, other: Index, add_id: int = 0) -> None:
        """Move all entries of ``other`` here; their ids grow by ``add_id``."""
        self.check_compatible_for_merge(other)
        assert isinstance(other, IndexIDMap)
        ids = other.id_map + add_id
        self.index.merge_from(other.index)
        self._pieces.append(ids)
        other.reset()

    def reset(self) -> None:
        """Remove everything."""
        self.index.reset()
        self._pieces = [np.empty(0, np.int64)]

    def _remove(self, removed: BoolArray) -> int:
        count = self.index._remove(removed)
        self._pieces = [self.id_map[~removed]]
        return count

    def _engine(self) -> hiernorm.index.Index:
        return self.index._engine()

    def _entry_ids(self) -> Int64Array:
        return self.index._entry_ids()

    def _labels(self) -> Int64Array:
        return self.id_map

    def _labels_of(self, entries: Int64Array) -> Int64Array:
        labels = np.full(entries.shape, -1)
        found = entries >= 0
        labels[found] = self.id_map[self.index._labels_of(entries[found])]
        return labels

    def _entries_with(self, labels: Int64Array) -> Int64Array:
        raise NotImplementedError(
            "reconstruct not implemented for this type of index: use IndexIDMap2"
        )


class IndexIDMap2(IndexIDMap):
    """An :class:`IndexIDMap` that finds vectors by id; of equal ids, the one added last.

    Examples
    --------
    >>> import numpy as np
    >>> import hiernorm.adapters.faiss_shaped as faiss
    >>> index = faiss.index_factory(2, "IDMap2,Flat")
    >>> index.add_with_ids(np.float32([[1, 0], [0, 1]]), np.array([70, 5]))
    >>> index.reconstruct(5).tolist()
    [0.0, 1.0]
    """

    _order: tuple[Int64Array, Int64Array] | None = None

    def check_consistency(self) -> None:
        """Raise RuntimeError if an id was given to several vectors, as FAISS does."""
        ids = self.id_map
        if len(np.unique(ids)) != len(ids):
            raise RuntimeError(f"{len(ids)} entries have {len(np.unique(ids))} different ids")

    def _entries_with(self, labels: Int64Array) -> Int64Array:
        ids = self.id_map
        if self._order is None or self._order[0] is not ids:
            self._order = (ids, np.argsort(ids, kind="stable"))
        order = self._order[1]
        last = np.searchsorted(ids, labels, side="right", sorter=order) - 1
        positions = order[last] if len(order) else last
        unknown = (last < 0) | (ids[positions] != labels) if len(order) else labels == labels
        if unknown.any():
            raise KeyError(f"key {labels[unknown][0]} not found: no entry has this id")
        return self.index._entries_with(positions)

"""Selectors of ids, as FAISS names them, and the choice that a filter makes among ids.

A selector chooses from an array of ids at once, so that a filter costs no call per entry:
:meth:`IDSelector.members` takes ids ``(n,)`` and returns booleans ``(n,)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_count, as_ids


class IDSelector:
    """What chooses ids; a subclass has :meth:`members`."""

    def members(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` ``(n,)`` are chosen: booleans ``(n,)``."""
        raise NotImplementedError(f"{type(self).__name__} must have a method members(ids)")

    def is_member(self, id: int) -> bool:
        """Whether one id is chosen."""
        return bool(self.members(as_ids(id))[0])


class IDSelectorAll(IDSelector):
    """All ids."""

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return np.ones(len(ids), np.bool_)


class IDSelectorRange(IDSelector):
    """Ids from ``imin`` up to, but without, ``imax``.

    Examples
    --------
    >>> IDSelectorRange(2, 4).members(np.arange(6)).tolist()
    [False, False, True, True, False, False]
    """

    def __init__(self, imin: int, imax: int, assume_sorted: bool = False) -> None:
        self.imin = imin
        self.imax = imax
        self.assume_sorted = assume_sorted  # FAISS uses it for inverted lists

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return (ids >= self.imin) & (ids < self.imax)


class IDSelectorArray(IDSelector):
    """The ids of an array: ``IDSelectorArray(ids)``, or ``(n, ids)`` for the first n of them.

    Examples
    --------
    >>> IDSelectorArray([5, 1]).members(np.arange(6)).tolist()
    [False, True, False, False, False, True]
    """

    def __init__(self, *args: Any) -> None:
        self.ids = _first(as_ids, *args)

    @property
    def n(self) -> int:
        """The number of ids."""
        return len(self.ids)

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return np.isin(ids, self.ids)


class IDSelectorBatch(IDSelectorArray):
    """The same, of a copy: later changes of the array have no effect."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ids = np.unique(self.ids)


class IDSelectorBitmap(IDSelector):
    """The ids whose bit is set: that of id i is bit ``i % 8`` of byte ``i // 8``.

    ``IDSelectorBitmap(bitmap)`` takes bytes ``(n,)`` uint8, such as those of
    ``np.packbits(mask, bitorder="little")``; ``(n, bitmap)`` the first n of them.

    Examples
    --------
    >>> IDSelectorBitmap(np.uint8([0b00000110])).members(np.arange(10)).nonzero()[0].tolist()
    [1, 2]
    """

    def __init__(self, *args: Any) -> None:
        self.bitmap = _first(_as_bytes, *args)

    @property
    def n(self) -> int:
        """The number of bytes."""
        return len(self.bitmap)

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        inside: BoolArray = (ids >= 0) & (ids < 8 * self.n)
        if not inside.any():
            return inside
        known = np.where(inside, ids, 0)
        bits: BoolArray = (self.bitmap[known >> 3] >> (known & 7) & 1).astype(np.bool_)
        return inside & bits


class IDSelectorNot(IDSelector):
    """The ids that another selector does not choose."""

    def __init__(self, sel: Any) -> None:
        self.sel = sel

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return ~chosen(self.sel, ids)


class _IDSelectorPair(IDSelector):
    """What two selectors choose together."""

    combine: Callable[[BoolArray, BoolArray], BoolArray]

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs = lhs
        self.rhs = rhs

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return type(self).combine(chosen(self.lhs, ids), chosen(self.rhs, ids))


class IDSelectorAnd(_IDSelectorPair):
    """The ids that both selectors choose."""

    combine = np.logical_and


class IDSelectorOr(_IDSelectorPair):
    """The ids that one selector or both choose."""

    combine = np.logical_or


class IDSelectorXOr(_IDSelectorPair):
    """The ids that one selector chooses and the other does not."""

    combine = np.logical_xor


class PyCallbackIDSelector(IDSelector):
    """The ids for which a function of one id is true; a function of an array of ids is faster."""

    def __init__(self, callback: Callable[[int], bool]) -> None:
        self.callback = callback

    def members(self, ids: Int64Array) -> BoolArray:
        """See :class:`IDSelector`."""
        return _one_by_one(self.callback, ids)


class SearchParameters:
    """Parameters of one search: ``sel``, which limits it to the ids that ``sel`` chooses."""

    def __init__(self, sel: Any = None) -> None:
        self.sel = sel


def selector_of(params: Any) -> Any:
    """What limits a search: the ``sel`` of search parameters, or ``params`` itself.

    A selector may have a ``sel`` of its own, which it negates: it is taken as it is.
    """
    if hasattr(params, "is_member") or not hasattr(params, "sel"):
        return params
    return params.sel


def chosen(sel: Any, ids: Int64Array) -> BoolArray:
    """Which of ``ids`` ``(n,)`` a selector, a function of ids or an array of ids chooses.

    Examples
    --------
    >>> chosen(IDSelectorNot([3]), np.array([2, 3])).tolist()
    [True, False]
    >>> chosen(lambda ids: ids > 2, np.array([2, 3])).tolist()
    [False, True]
    """
    if isinstance(sel, IDSelector):
        return sel.members(ids)
    if _is_of_faiss(sel):
        return _members_by_faiss(sel, ids)
    if hasattr(sel, "is_member"):
        return _one_by_one(sel.is_member, ids)
    if not callable(sel):
        return np.isin(ids, as_ids(sel))
    answer = np.asarray(sel(ids))
    if answer.shape != ids.shape or answer.dtype != np.bool_:
        raise ValueError(
            f"a selecting function must return {len(ids)} booleans, "
            f"got shape {answer.shape}, dtype {answer.dtype}"
        )
    return answer


def _is_of_faiss(sel: Any) -> bool:
    """Whether ``sel`` is a selector of FAISS itself, which then has been imported."""
    kind = getattr(sys.modules.get("faiss"), "IDSelector", None)
    return kind is not None and isinstance(sel, kind)


def _members_by_faiss(sel: Any, ids: Int64Array) -> BoolArray:
    """Let FAISS itself apply its selector, by a range that holds all ids: no call per id."""
    faiss = sys.modules["faiss"]
    ones = np.ones((len(ids), 1), np.float32)
    every = faiss.IndexIDMap(faiss.IndexFlatIP(1))
    every.add_with_ids(ones, ids)
    params = faiss.SearchParameters(sel=sel)
    _, _, found = every.range_search(np.ones((1, 1), np.float32), 0.5, params=params)
    return np.isin(ids, found)


def _one_by_one(is_member: Callable[[int], bool], ids: Int64Array) -> BoolArray:
    return np.fromiter((is_member(id) for id in ids.tolist()), np.bool_, len(ids))


def _as_bytes(values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    array = np.asarray(values)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"a bitmap must be uint8 (n,), got {array.dtype} {array.shape}")
    return array


def _first(convert: Callable[[Any], Any], *args: Any) -> Any:
    """The converted array of ``(array,)``, or the first n values of ``(n, array)``."""
    if len(args) == 1:
        return convert(args[0])
    n, values = args
    array = convert(values)
    return array[: as_count("n", n, least=0, most=len(array))]

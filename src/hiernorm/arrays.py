"""Validation of arrays and counts, with errors that say what was expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import AnyArray, Float32Array, Int64Array
from hiernorm.inputs import to_numpy

MAX_ID = int(np.iinfo(np.int64).max)
PIECE_VALUES = 1 << 20
"""Values that one operation of NumPy takes where a user can wait for it."""


def as_float32(name: str, values: npt.ArrayLike) -> Float32Array:
    """``values`` as a C-contiguous float32 array of one or two dimensions.

    Float64, float16 and integers are rounded to the nearest float32. Contiguous float32 numbers of
    any library are used without a copy: NumPy, torch, Arrow, polars, whatever has DLPack (see
    :mod:`hiernorm.inputs`).
    """
    array = to_numpy(name, values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers (float32 is used), got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n, d) or (d,), got {array.ndim} dimensions "
            f"with shape {array.shape}"
        )
    if array.dtype != np.float32:
        array = _rounded(array)
    return np.ascontiguousarray(array)


def _rounded(array: AnyArray) -> Float32Array:
    """``array`` in float32, some rows at a time: Ctrl-C is heard between them."""
    rounded = np.empty(array.shape, np.float32)
    with np.errstate(over="ignore"):
        for part in row_pieces(array):
            rounded[part] = array[part]
    return rounded


def row_pieces(array: AnyArray) -> Iterator[slice]:
    """Slices of the first dimension of ``array``, of a few milliseconds of work each.

    Python hears of Ctrl-C between two operations of NumPy, never within one.

    Examples
    --------
    >>> list(row_pieces(np.empty((3, 1 << 20))))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    n = len(array)
    step = max(1, PIECE_VALUES * n // max(1, array.size))
    for first in range(0, n, step):
        yield slice(first, min(n, first + step))


def as_rows(name: str, values: npt.ArrayLike, dim: int) -> Float32Array:
    """``values`` as ``(n, dim)`` float32; a single ``(dim,)`` vector becomes one row."""
    rows = as_float32(name, values)
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    if rows.shape[1] != dim:
        raise ValueError(f"{name} have {rows.shape[1]} dimensions, the index has {dim}")
    return rows


def as_ids(ids: npt.ArrayLike, count: int | None = None) -> Int64Array:
    """``ids`` as a contiguous int64 array, ``count`` of them if given."""
    if isinstance(ids, (set, frozenset)):
        raise TypeError("ids are a set, which has no order: give sorted(ids)")
    missing = getattr(ids, "null_count", 0)  # of Arrow, and a method of polars
    if missing() if callable(missing) else missing:
        raise ValueError("ids have missing values (null)")
    array = np.atleast_1d(np.asarray(ids))
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        first = array.flat[0]
        if array.dtype == np.object_:  # NumPy holds integers beyond 64 bits as objects
            large = [x for x in array.flat if isinstance(x, int) and not is_id(x)]
            if large:
                raise ValueError(f"ids must fit int64, got {large[0]}")
        hint = ": see string_keys=True" if isinstance(first, (str, bytes)) else ""
        what = type(first).__name__ if array.dtype == np.object_ else f"dtype {array.dtype}"
        raise TypeError(f"ids must be integers (int64 is used), got {what}{hint}")
    if array.ndim != 1:
        raise ValueError(f"ids must have shape (n,), got {array.shape}")
    if count is not None and len(array) != count:
        raise ValueError(f"{count} vectors need {count} ids, got {len(array)}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"ids must fit int64, got {int(array.max())}")
    return np.ascontiguousarray(array, dtype=np.int64)


def is_id(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer that an entry may have as its id."""
    try:
        return -MAX_ID - 1 <= operator.index(value) <= MAX_ID  # type: ignore[arg-type]
    except TypeError:
        return False


def as_new_ids(ids: npt.ArrayLike, count: int | None = None) -> Int64Array:
    """The same for ids of new entries, which are not negative."""
    array = as_ids(ids, count)
    if array.min(initial=0) < 0:
        raise ValueError(
            f"ids must be at least 0, got {array.min()}: -1 means that there is no hit"
        )
    return array


def following_ids(next_id: int, count: int) -> Int64Array:
    """The ids of ``count`` entries that come without: ``next_id`` and those behind it.

    Every container keeps ``next_id``, one more than the largest id that it ever had.
    """
    if next_id + count > MAX_ID:
        raise ValueError("the ids that follow the largest do not fit int64: give ids")
    return np.arange(next_id, next_id + count, dtype=np.int64)


def next_id_after(next_id: int, ids: Int64Array) -> int:
    """The id that follows ``ids`` and all before; the largest int64 stays as it is."""
    return max(next_id, min(int(ids.max(initial=-1)) + 1, MAX_ID))


def as_number(name: str, value: float) -> float:
    """``value`` as a float; TypeError unless it is one number. One too large is infinite."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None


def as_share(name: str, value: float | str) -> float:
    """``value`` as a number; a text may be a fraction.

    Examples
    --------
    >>> as_share("alpha", "1/8"), as_share("alpha", 0.125)
    (0.125, 0.125)
    """
    if not isinstance(value, str):
        return as_number(name, value)
    try:
        return float(Fraction(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name}: {value!r} is no number such as 0.125 or 1/8") from None


MAX_COUNT = 2**62
"""The largest count that the core takes."""


def as_count(name: str, value: int, least: int = 1, most: int = MAX_COUNT) -> int:
    """``value`` as an int from ``least`` to ``most``."""
    if type(value) is int and least <= value <= most:
        return value
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    if count > most:
        raise ValueError(f"{name} must be at most {most}, got {count}")
    return count


def as_threshold(value: float) -> float:
    """The threshold of a range search as a finite float."""
    threshold = as_number("threshold", value)
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {value}")
    return threshold


MAX_HITS = 2**31 - 1
PADDED_BYTES = 1 << 28
"""Maximum size of an answer that has room for more hits than there are entries."""


def as_hit_count(k: int, queries: int, entries: int) -> int:
    """The number of hits ``k``, if the answers are no larger than what can fill them, or small.

    Examples
    --------
    >>> as_hit_count(10, queries=1, entries=3)
    10
    >>> as_hit_count(10**8, queries=1, entries=3)
    Traceback (most recent call last):
    ValueError: k is 100,000,000, but there are 3 entries: ask for at most 3 hits
    """
    count = as_count("k", k, most=MAX_HITS)
    if count > entries and 16 * count * queries > PADDED_BYTES:
        raise ValueError(
            f"k is {count:,}, but there are {entries:,} entries: ask for at most "
            f"{max(1, entries):,} hits"
        )
    return count

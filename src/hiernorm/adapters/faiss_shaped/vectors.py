"""FAISS's functions on arrays of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.arrays import as_count
from hiernorm.reference import canonical_norm

ROWS_AT_A_TIME = 4096


def normalize_L2(x: Float32Array) -> None:  # noqa: N802
    """Give the rows of ``x`` ``(n, d)`` norm 1, in place; rows of zeros stay.

    The result is the same on every machine, and within rounding that of FAISS.

    Examples
    --------
    >>> x = np.float32([[3, 4], [0, 0]])
    >>> normalize_L2(x)
    >>> x.tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 2:
        raise TypeError(
            "x must be a float32 array (n, d), since it is changed in place, "
            f"got {getattr(x, 'dtype', type(x).__name__)} {getattr(x, 'shape', '')}"
        )
    for first in range(0, len(x), ROWS_AT_A_TIME):
        rows = x[first : first + ROWS_AT_A_TIME]
        norms = canonical_norm(rows)
        norms[norms == 0] = 1
        rows[...] = rows.astype(np.float64) / norms[:, np.newaxis]


def vector_to_array(v: npt.ArrayLike) -> npt.NDArray[Any]:
    """A copy of what is an array here and a C++ vector in FAISS, such as ``index.id_map``."""
    return np.array(v)


vector_float_to_array = vector_to_array


def rev_swig_ptr(ptr: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The first n values of what is an array here and a pointer in FAISS: ``index.get_xb()``."""
    return ptr[: as_count("n", n, least=0, most=len(ptr))]


def swig_ptr(a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself, which FAISS makes a pointer of."""
    return a


def rand(n: int | tuple[int, ...], seed: int = 12345) -> Float32Array:
    """Random float32 numbers from 0 to 1, of NumPy: others than FAISS has for the same seed.

    Examples
    --------
    >>> rand((2, 3), seed=1).shape, bool((rand(5) == rand(5)).all())
    ((2, 3), True)
    """
    return np.random.default_rng(seed).random(n, np.float32)


def randn(n: int | tuple[int, ...], seed: int = 12345) -> Float32Array:
    """The same with the normal distribution."""
    return np.random.default_rng(seed).standard_normal(n, np.float32)


def randint(n: int | tuple[int, ...], seed: int = 12345, vmax: int | None = None) -> Int64Array:
    """The same with int64 numbers from 0 up to, but without, ``vmax``."""
    most = np.iinfo(np.int64).max if vmax is None else vmax
    return np.random.default_rng(seed).integers(0, most, n)


def downcast_index(index: Any) -> Any:
    """The index itself: it already has its own class."""
    return index

"""FAISS's functions on arrays of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array
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


def downcast_index(index: Any) -> Any:
    """The index itself: it already has its own class."""
    return index

"""Exact matching of byte vectors, such as uint8 SIFT, by the angles between them.

Products of bytes are integers, so the best match, the second best and the tests on their angles are
decided without rounding: every thread count and instruction set gives the same matches. Bytes stay
bytes: an entry takes its own 128 bytes and 136 bytes of codes that bound its products.
``hiernorm.reference.match_bytes`` is the specification.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiernorm import _core
from hiernorm.array_types import Float64Array, Int64Array, UInt8Array
from hiernorm.reference.byte_matches import angle_limits, least_product
from hiernorm.threads import one_blas_thread, thread_count

MAX_RATIO = 0.8
"""Threshold of the ratio test on angles, as in COLMAP."""
MAX_DISTANCE = 0.7
"""Largest angle of a match in radians, as in COLMAP."""
SAMPLE_ROWS = 4096
"""Rows that the rotation of the codes is computed from."""
PART_ROWS = 8192
"""Rows that are encoded in one step, as float64."""
LARGEST_CODE = 32_000
"""Codes are int16; this bound keeps products of two rows of codes inside int32."""


class ByteRotation:
    """The rotation that the codes of byte vectors are computed with; fitted once for many sets.

    Any rotation gives the same matches. One that is fitted to similar vectors gives them sooner.

    Parameters
    ----------
    sample
        ``(n, d)`` uint8 vectors like those that will be matched.
    """

    def __init__(self, sample: npt.ArrayLike) -> None:
        rows = _checked_bytes("sample", sample)
        step = max(1, len(rows) // SAMPLE_ROWS)
        few = rows[::step][:SAMPLE_ROWS].astype(np.float64)
        with one_blas_thread():
            _, directions = np.linalg.eigh(few.T @ few)
        slots = min(_core.CODE_SLOTS - 1, rows.shape[1])
        self.matrix: Float64Array = np.ascontiguousarray(directions[:, ::-1][:, :slots])

    @property
    def dim(self) -> int:
        """Dimensions of the vectors."""
        return len(self.matrix)


class ByteDescriptors:
    """Byte vectors that are ready to be matched, any number of times.

    Parameters
    ----------
    rows
        ``(n, d)`` uint8.
    rotation
        Of similar vectors; None to fit one to these rows. Both sets of a match must share it.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.kron(np.eye(3, dtype=np.uint8), np.uint8([255, 255, 255, 255]))
    >>> a = ByteDescriptors(rows)
    >>> b = ByteDescriptors(rows[::-1], a.rotation)
    >>> match_bytes(a, b).pairs.tolist()
    [[0, 2], [1, 1], [2, 0]]
    """

    def __init__(self, rows: npt.ArrayLike, rotation: ByteRotation | None = None) -> None:
        checked = _checked_bytes("rows", rows)
        self.rotation = rotation or ByteRotation(checked)
        if self.rotation.dim != checked.shape[1]:
            raise ValueError(
                f"rows have {checked.shape[1]} dimensions, the rotation has {self.rotation.dim}"
            )
        self.dim = checked.shape[1]
        codes, shift = _encode(checked, self.rotation.matrix)
        self._set = _core.ByteSet(checked, codes, shift)

    def __len__(self) -> int:
        return len(self._set)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._set.nbytes


class ByteMatches(NamedTuple):
    """Matches of two sets of byte vectors.

    Attributes
    ----------
    pairs : (m, 2) int64
        Row of the first set, row of the second; in the order of the first.
    products
        The number of inner products that were computed; the others were bounded.
    """

    pairs: Int64Array
    products: int


def match_bytes(
    a: ByteDescriptors,
    b: ByteDescriptors,
    *,
    max_ratio: float = MAX_RATIO,
    max_distance: float = MAX_DISTANCE,
    cross_check: bool = True,
    threads: int | None = None,
) -> ByteMatches:
    """Match each vector of ``a`` with the one of ``b`` at the smallest angle.

    The same matches as the brute-force matcher of COLMAP, in memory that grows with the number of
    vectors, not with the number of pairs. The angle of two vectors is the arc cosine of their
    product / 512², at most 1, rounded to float32.

    Parameters
    ----------
    a, b
        Sets with the same rotation.
    max_ratio
        The smallest angle must be below this share of the second smallest.
    max_distance
        Largest angle of a match in radians.
    cross_check
        Whether the match must hold from ``b`` to ``a`` as well, with all tests.
    threads
        As for :class:`hiernorm.Index`.
    """
    if a.dim != b.dim:
        raise ValueError(f"a has {a.dim} dimensions, b has {b.dim}")
    if a.rotation is not b.rotation and not np.array_equal(a.rotation.matrix, b.rotation.matrix):
        raise ValueError(
            "a and b were encoded by different rotations: make both with the same rotation="
        )
    limits, least = _rule(float(max_ratio), float(max_distance))
    pairs, products = _core.match_bytes(
        a._set, b._set, limits, least, cross_check, thread_count(threads)
    )
    return ByteMatches(pairs, products)


@lru_cache(maxsize=8)
def _rule(max_ratio: float, max_distance: float) -> tuple[npt.NDArray[np.int32], int]:
    """The tables of the tests; they take some milliseconds to compute."""
    return angle_limits(max_ratio), least_product(max_distance)


def _encode(rows: UInt8Array, rotation: Float64Array) -> tuple[npt.NDArray[np.int16], int]:
    """Codes ``(n, CODE_SLOTS)`` and their shift; ``byte_set.hpp`` proves what they bound."""
    codes = np.zeros((len(rows), _core.CODE_SLOTS), np.int16)
    lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.int64)
    longest = float(np.sqrt(lengths.max())) + 1 if len(rows) else 1.0
    shift = min(5, int(np.floor(np.log2(LARGEST_CODE / longest))))
    scale = float(2**shift)
    slots = rotation.shape[1]
    for start in range(0, len(rows), PART_ROWS):
        part = slice(start, start + PART_ROWS)
        with one_blas_thread():  # the caller's threads match other pairs meanwhile
            rotated = rows[part].astype(np.float64) @ rotation
        codes[part, :slots] = np.rint(rotated * scale)
        outside = lengths[part] - np.einsum("ij,ij->i", rotated, rotated)
        # 1e-5 is above the rounding error of `outside`, whose terms are below 2^23.
        codes[part, -1] = np.ceil(np.sqrt(np.maximum(outside, 0) + 1e-5) * scale)
    return codes, shift


def _checked_bytes(name: str, rows: npt.ArrayLike) -> UInt8Array:
    """The rows as contiguous uint8 ``(n, d)``."""
    array = np.asarray(rows)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} must be uint8 of the shape (n, d), got {array.dtype} of {array.shape}"
        )
    return np.ascontiguousarray(array)

"""Hierarchical Normalization, Eq. (1) of the paper, for NumPy arrays."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array
from hiernorm.arrays import as_count, as_float32, as_share, row_pieces
from hiernorm.reference import canonical_norm


def normalize(features: npt.ArrayLike, major: int = 16, alpha: float | str = 1 / 8) -> Float32Array:
    """Normalise features of a network trained for HN; other vectors lose their true neighbours.

    The first ``major`` dimensions get norm sqrt(1 - alpha), the others sqrt(alpha): Eq. (1) of the
    paper. On 4,000 MiniLM embeddings, which were not trained for it, ``normalize(x, major=16)``
    keeps 22% of the true nearest neighbours. Add such vectors to ``Index(dim)`` as they are.

    The result is the same on every machine: norms are canonical sums (see
    :mod:`hiernorm.reference`), and only +, *, / and square roots follow, each correctly rounded.

    Parameters
    ----------
    features
        ``(n, d)`` or ``(d,)``; any floating or integer type, converted to float32 first.
    major
        K, the size of the major: ``1 <= major < d``.
    alpha
        The share of energy in the minor, a number or a text such as ``"1/8"``:
        ``0 <= alpha < 1``. With ``alpha=0`` the minor becomes exactly zero, whatever it was.

    Returns
    -------
    float32 array of the shape of ``features``.

    Raises
    ------
    ValueError
        If a value is not finite, or a part that must be scaled has zero norm; the row is named.

    Examples
    --------
    >>> import numpy as np, hiernorm
    >>> hiernorm.normalize(np.float32([[3, 4, 0, 2]]), major=2, alpha=0.25)
    array([[0.51961523, 0.6928203 , 0.        , 0.5       ]], dtype=float32)
    """
    rows = as_float32("features", features)
    single = rows.ndim == 1
    if single:
        rows = rows[np.newaxis]
    major = as_count("major", major)
    alpha = as_share("alpha", alpha)
    check_split(rows.shape[1], major, alpha)
    for part in row_pieces(rows):
        finite = np.isfinite(rows[part]).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"features row {part.start + int(np.argmin(finite))} has NaN or infinity (as "
                "float32); all values must be finite"
            )
    result = np.zeros_like(rows)
    _scale(rows[:, :major], math.sqrt(1 - alpha), "major", result[:, :major])
    if alpha > 0:
        _scale(rows[:, major:], math.sqrt(alpha), "minor", result[:, major:])
    return result[0] if single else result


def check_split(dim: int, major: int, alpha: float) -> None:
    """Raise ValueError unless ``1 <= major < dim`` and ``0 <= alpha < 1``."""
    if not 1 <= major < dim:
        raise ValueError(f"major must be from 1 to {dim - 1} for {dim} dimensions, got {major}")
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1), got {alpha}")


def _scale(values: Float32Array, target: float, name: str, result: Float32Array) -> None:
    """Write the rows of ``values`` to ``result``, each with the norm ``target``."""
    for part in row_pieces(values):
        norms = canonical_norm(values[part])
        if not (norms > 0).all():
            raise ValueError(
                f"features row {part.start + int(np.argmin(norms))} has a {name} of zero norm, "
                "which has no direction to keep"
            )
        result[part] = values[part].astype(np.float64) * (target / norms)[:, np.newaxis]

"""Filters: what ``where`` may be in a search, and the ids that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_ids

if TYPE_CHECKING:
    from hiernorm.payload.conditions import BoundCondition
    from hiernorm.storage.selection import Selection

Where: TypeAlias = (
    "Selection | BoundCondition | Callable[[Int64Array], npt.ArrayLike] | npt.ArrayLike"
)
"""Ids, string keys, a mask over the ids of the container, a function of an array of ids, or a
condition on the payload: a text or a pyarrow expression (:mod:`hiernorm.payload.conditions`)."""


def call_filter(where: Callable[[Int64Array], npt.ArrayLike], ids: Int64Array) -> BoolArray:
    """Which of ``ids`` the function ``where`` chooses."""
    chosen = np.asarray(where(ids))
    if chosen.dtype != np.bool_ or chosen.shape != ids.shape:
        raise TypeError(
            f"where must return booleans of shape {ids.shape} for that many ids, "
            f"got {chosen.dtype} of shape {chosen.shape}"
        )
    return chosen


def ids_of_array(
    where: Any, entries: int, all_ids: Callable[[], Int64Array], container: str
) -> Int64Array:
    """The ids that an array stands for: ids, or a mask over ``all_ids()``, of which there are some.

    Examples
    --------
    >>> ids_of_array([True, False], 2, lambda: np.array([7, 9]), "index").tolist()
    [7]
    """
    if hasattr(where, "generation"):
        raise TypeError("a Selection belongs to one Database: give ids, a mask or a function")
    values = np.asarray(where)
    if values.dtype != np.bool_:
        return as_ids(where)
    if values.shape != (entries,):
        raise ValueError(
            f"where has shape {values.shape}, a mask over the ids of this {container} "
            f"has ({entries},)"
        )
    chosen: Int64Array = all_ids()[values]
    return chosen

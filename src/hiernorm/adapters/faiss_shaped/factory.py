"""An index from its description, as ``faiss.index_factory``."""

from __future__ import annotations

from hiernorm.adapters.faiss_shaped.base import METRIC_L2, Index
from hiernorm.adapters.faiss_shaped.flat import IndexFlat
from hiernorm.adapters.faiss_shaped.id_map import IndexIDMap, IndexIDMap2

MAPS = {"IDMap": IndexIDMap, "IDMap2": IndexIDMap2}


def index_factory(d: int, description: str, metric: int = METRIC_L2) -> Index:
    """An exact index of ``d`` dimensions: ``"Flat"``, ``"IDMap,Flat"`` or ``"IDMap2,Flat"``.

    FAISS's other order, ``"Flat,IDMap"``, is the same.

    Raises
    ------
    NotImplementedError
        For any other description; it is a RuntimeError, as in FAISS.

    Examples
    --------
    >>> import hiernorm.adapters.faiss_shaped as faiss
    >>> faiss.index_factory(64, "IDMap,Flat", faiss.METRIC_INNER_PRODUCT)
    IndexIDMap(d=64, ntotal=0)
    """
    parts = description.split(",")
    if parts == ["Flat"]:
        return IndexFlat(d, metric)
    if len(parts) == 2 and "Flat" in parts:
        parts.remove("Flat")
        if parts[0] in MAPS:
            return MAPS[parts[0]](IndexFlat(d, metric))
    raise NotImplementedError(
        f"could not parse index string {description!r}: Flat, IDMap,Flat and IDMap2,Flat are exact "
        "here; for cosine, normalize_L2 the vectors and use metric 0; others are in FAISS"
    )

"""Exact search with the interfaces of scikit-learn, FAISS, kornia and sentence-transformers.

Each adapter imports its library when it is first used. If the library is missing, the error names
the extra that installs it. The adapter for FAISS needs NumPy only; :mod:`faiss_shaped` has all
names of FAISS that it knows: ``import hiernorm.adapters.faiss_shaped as faiss``. Stores for RAG
frameworks are in :mod:`hiernorm.adapters.langchain`, :mod:`hiernorm.adapters.llama_index` and
:mod:`hiernorm.adapters.haystack`.

>>> from hiernorm.adapters import IndexHN
>>> import numpy as np
>>> index = IndexHN(2)
>>> index.add(np.float32([[1, 0], [0, 1]]))
>>> index.search(np.float32([[0.6, 0.8]]), 1)[1].tolist()
[[1]]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hiernorm.extras import import_extra

if TYPE_CHECKING:
    from hiernorm.adapters import faiss_shaped
    from hiernorm.adapters.faiss_shaped import (
        IndexFlat,
        IndexFlatIP,
        IndexFlatL2,
        IndexHN,
        IndexIDMap,
        IndexIDMap2,
        SearchParameters,
        deserialize_index,
        index_factory,
        normalize_L2,
        read_index,
        serialize_index,
        write_index,
    )
    from hiernorm.adapters.kornia_modules import HNDescriptor, HNDescriptorMatcher
    from hiernorm.adapters.scikit_learn import HNNeighbors, HNNeighborsTransformer
    from hiernorm.adapters.text import HNText

_MODULES = {
    "HNDescriptor": ("kornia_modules", "kornia"),
    "HNDescriptorMatcher": ("kornia_modules", "kornia"),
    "HNNeighbors": ("scikit_learn", "sklearn"),
    "HNNeighborsTransformer": ("scikit_learn", "sklearn"),
    "HNText": ("text", "text"),
    "IndexFlat": ("faiss_shaped", "core"),
    "IndexFlatIP": ("faiss_shaped", "core"),
    "IndexFlatL2": ("faiss_shaped", "core"),
    "IndexHN": ("faiss_shaped", "core"),
    "IndexIDMap": ("faiss_shaped", "core"),
    "IndexIDMap2": ("faiss_shaped", "core"),
    "SearchParameters": ("faiss_shaped", "core"),
    "deserialize_index": ("faiss_shaped", "core"),
    "index_factory": ("faiss_shaped", "core"),
    "normalize_L2": ("faiss_shaped", "core"),
    "read_index": ("faiss_shaped", "core"),
    "serialize_index": ("faiss_shaped", "core"),
    "write_index": ("faiss_shaped", "core"),
}
"""The module of each name, and the extra that installs what the module needs."""

__all__ = [
    "HNDescriptor",
    "HNDescriptorMatcher",
    "HNNeighbors",
    "HNNeighborsTransformer",
    "HNText",
    "IndexFlat",
    "IndexFlatIP",
    "IndexFlatL2",
    "IndexHN",
    "IndexIDMap",
    "IndexIDMap2",
    "SearchParameters",
    "deserialize_index",
    "faiss_shaped",
    "index_factory",
    "normalize_L2",
    "read_index",
    "serialize_index",
    "write_index",
]


def __getattr__(name: str) -> Any:
    if name == "faiss_shaped":
        return import_module("hiernorm.adapters.faiss_shaped")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, extra = _MODULES[name]
    return getattr(import_extra(f"hiernorm.adapters.{home}", extra=extra), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""The names of FAISS's flat indexes, for exact and reproducible search: one import changes.

>>> import numpy as np
>>> import hiernorm.adapters.faiss_shaped as faiss  # was: import faiss
>>> index = faiss.IndexFlatL2(2)
>>> index.add(np.float32([[0, 0], [3, 4]]))
>>> D, I = index.search(np.float32([[3, 3]]), 1)
>>> D.tolist(), I.tolist()
([[1.0]], [[1]])
"""

from types import SimpleNamespace

from hiernorm import __version__
from hiernorm.adapters.faiss_shaped.base import METRIC_INNER_PRODUCT, METRIC_L2, Index
from hiernorm.adapters.faiss_shaped.factory import index_factory
from hiernorm.adapters.faiss_shaped.files import (
    deserialize_index,
    read_index,
    serialize_index,
    write_index,
)
from hiernorm.adapters.faiss_shaped.flat import IndexFlat, IndexFlatIP, IndexFlatL2, clone_index
from hiernorm.adapters.faiss_shaped.hn import IndexHN
from hiernorm.adapters.faiss_shaped.id_map import IndexIDMap, IndexIDMap2
from hiernorm.adapters.faiss_shaped.selectors import (
    IDSelector,
    IDSelectorAll,
    IDSelectorAnd,
    IDSelectorArray,
    IDSelectorBatch,
    IDSelectorBitmap,
    IDSelectorNot,
    IDSelectorOr,
    IDSelectorRange,
    IDSelectorXOr,
    PyCallbackIDSelector,
    SearchParameters,
)
from hiernorm.adapters.faiss_shaped.streams import (
    BufferedIOReader,
    BufferedIOWriter,
    FileIOReader,
    FileIOWriter,
    PyCallbackIOReader,
    PyCallbackIOWriter,
)
from hiernorm.adapters.faiss_shaped.threads import omp_get_max_threads, omp_set_num_threads
from hiernorm.adapters.faiss_shaped.vectors import (
    downcast_index,
    normalize_L2,
    rand,
    randint,
    randn,
    rev_swig_ptr,
    swig_ptr,
    vector_float_to_array,
    vector_to_array,
)

cvar = SimpleNamespace(
    distance_compute_blas_threshold=128_000,
    distance_compute_blas_query_bs=4096,
    distance_compute_blas_database_bs=1024,
    distance_compute_min_k_reservoir=100,
)
"""FAISS's settings of its own kernels, with its defaults. They may be set and have no effect."""

__all__ = [
    "METRIC_INNER_PRODUCT",
    "METRIC_L2",
    "BufferedIOReader",
    "BufferedIOWriter",
    "FileIOReader",
    "FileIOWriter",
    "IDSelector",
    "IDSelectorAll",
    "IDSelectorAnd",
    "IDSelectorArray",
    "IDSelectorBatch",
    "IDSelectorBitmap",
    "IDSelectorNot",
    "IDSelectorOr",
    "IDSelectorRange",
    "IDSelectorXOr",
    "Index",
    "IndexFlat",
    "IndexFlatIP",
    "IndexFlatL2",
    "IndexHN",
    "IndexIDMap",
    "IndexIDMap2",
    "PyCallbackIDSelector",
    "PyCallbackIOReader",
    "PyCallbackIOWriter",
    "SearchParameters",
    "__version__",
    "clone_index",
    "cvar",
    "deserialize_index",
    "downcast_index",
    "index_factory",
    "normalize_L2",
    "omp_get_max_threads",
    "omp_set_num_threads",
    "rand",
    "randint",
    "randn",
    "read_index",
    "rev_swig_ptr",
    "serialize_index",
    "swig_ptr",
    "vector_float_to_array",
    "vector_to_array",
    "write_index",
]

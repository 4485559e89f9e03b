"""The names of FAISS's flat indexes, for exact and reproducible search."""

from hiernorm.adapters.faiss_shaped.base import IndexHN, read_index, write_index

__all__ = ["IndexHN", "read_index", "write_index"]

"""An index of ours among the methods of a benchmark: single queries, one thread."""

from __future__ import annotations

import hiernorm
from hiernorm.bench.cases import Group
from hiernorm.bench.methods import Search
from hiernorm.reference import Float32Array


class Indexed:
    """A method (see hiernorm.bench.methods) that is an index with settings of its own."""

    family = "cascade"

    def __init__(self, name: str, index: hiernorm.Index) -> None:
        self.name = self.index_name = name
        self.index = index

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database; our build uses no chance, so the seed does not matter."""
        self.index.add(database)

    def nbytes(self) -> int:
        """Bytes of entries, codes and tables."""
        return self.index.nbytes

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        return lambda q: self.index.search(q, group.k, threads=1, batch_size=1).ids

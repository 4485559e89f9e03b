"""The methods that are compared: our engines and their peers, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import hiernorm
from experiments.harness.conditions import Group, import_optional
from experiments.harness.points import Point
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array, Int64Array

Search = Callable[[Float32Array], Int64Array]

PANORAMA_LEVELS = (4, 8, 16)
HNSW_LINKS = 16
HNSW_EF_CONSTRUCTION = 200
HNSW_EFS = (10, 50, 100, 200, 500)
NUMPY_SCORES = 2**24
"""Scores that NumPy holds at a time in a batch: 64 MB."""


class Method(Protocol):
    """One way to find the k entries of largest inner product."""

    family: str
    """Groups variants of which a table reports the best: `panorama`, `hnswlib`, ..."""
    name: str
    index_name: str
    """What is built: methods that name the same index share it, and one of them builds it."""

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database."""

    def nbytes(self) -> int | None:
        """Bytes that the index holds, or None where the library does not tell."""

    def prepare(self, group: Group) -> Search:
        """Set what searches of this group need; return the function that runs one call."""


class Hiernorm:
    """An index of this package.

    Parameters
    ----------
    name
        Of the method, and of its index.
    family
        The engine, unless the method is a variant of its own.
    beta
        Of every search; None means exact.
    settings
        Of :class:`hiernorm.Index`.
    """

    def __init__(
        self, name: str, family: str = "cascade", beta: float | None = None, **settings: Any
    ) -> None:
        self.name = self.index_name = name
        self.family = family
        self.index: hiernorm.Index
        self._beta = beta
        self._settings = settings

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database; our build uses no chance, so the seed does not matter."""
        self.index = hiernorm.Index(database.shape[1], **self._settings)
        self.index.add(database)

    def over(self, index: hiernorm.Index) -> Hiernorm:
        """Search an index that is built already; return the method itself."""
        self.index = index
        return self

    def nbytes(self) -> int:
        """Bytes of entries, codes and tables."""
        return self.index.nbytes

    def hits(self, queries: Float32Array, group: Group) -> hiernorm.Hits:
        """Search and return the whole answer: ids, scores and certificate."""
        size = None if group.manner == "batch" else 1
        return self.index.search(
            queries, group.k, threads=group.threads, batch_size=size, beta=self._beta
        )

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        search, k, threads, beta = self.index.search, group.k, group.threads, self._beta
        size = None if group.manner == "batch" else 1
        return lambda queries: search(queries, k, threads=threads, batch_size=size, beta=beta).ids


class FaissFlat:
    """FAISS IndexFlatIP or IndexFlatL2: the exhaustive baseline of every ratio."""

    family = "flat"
    name = index_name = "FAISS IndexFlatIP"

    def __init__(self, faiss: Any, metric: str = "ip") -> None:
        self._kind = f"IndexFlat{metric.upper()}"
        self.name = self.index_name = f"FAISS {self._kind}"
        self._faiss = faiss
        self._index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Copy the database."""
        self._index = getattr(self._faiss, self._kind)(database.shape[1])
        self._index.add(database)

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        search, k = self._index.search, group.k
        return lambda queries: search(queries, k)[1]


class FaissPanorama:
    """FAISS IndexFlatIPPanorama: exact, prunes by norms of the remaining dimensions."""

    family = "panorama"

    def __init__(self, faiss: Any, levels: int, metric: str = "ip") -> None:
        self.name = self.index_name = f"Panorama, {levels} levels"
        self._kind = f"IndexFlat{metric.upper()}Panorama"
        self._faiss = faiss
        self._levels = levels
        self._index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Copy the database and compute the norms of every level."""
        self._index = getattr(self._faiss, self._kind)(database.shape[1], self._levels)
        self._index.add(database)

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        search, k = self._index.search, group.k
        return lambda queries: search(queries, k)[1]


class BuiltGraph(Protocol):
    """A graph of hnswlib that searches share."""

    index: Any

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database."""


class HnswGraph:
    """The hnswlib graph that the searches at every ef share."""

    def __init__(self, hnswlib: Any) -> None:
        self._hnswlib = hnswlib
        self.index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Build with one thread, as every index here is built."""
        self.index = self._hnswlib.Index(space="ip", dim=database.shape[1])
        self.index.init_index(
            len(database), M=HNSW_LINKS, ef_construction=HNSW_EF_CONSTRUCTION, random_seed=seed
        )
        self.index.add_items(database, num_threads=1)


class Hnsw:
    """hnswlib at one ef: approximate."""

    family = "hnswlib"
    index_name = "hnswlib graph"

    def __init__(self, graph: BuiltGraph, ef: int) -> None:
        self.name = f"hnswlib ef={ef}"
        self._graph = graph
        self._ef = ef

    def build(self, database: Float32Array, seed: int) -> None:
        """Build the shared graph."""
        self._graph.build(database, seed)

    def nbytes(self) -> int:
        """Bytes of vectors and links, as they would be written to a file."""
        return int(self._graph.index.index_file_size())

    def prepare(self, group: Group) -> Search:
        """Set ef; return a search that yields ids."""
        index, k, threads = self._graph.index, group.k, group.threads
        index.set_ef(self._ef)
        return lambda queries: index.knn_query(queries, k=k, num_threads=threads)[0]


class UsearchExact:
    """USearch's exact search over a plain matrix."""

    family = "usearch"
    name = index_name = "USearch exact"

    def __init__(self, usearch: Any) -> None:
        self._usearch = usearch
        self._database: Float32Array | None = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Keep the matrix: there is nothing to build."""
        self._database = database

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids, one row per query."""
        search, metric = self._usearch.search, self._usearch.MetricKind.IP
        database, k, threads = self._database, group.k, group.threads

        def run(queries: Float32Array) -> Int64Array:
            matches = search(database, queries, k, metric=metric, exact=True, threads=threads)
            return np.asarray(matches.keys, dtype=np.int64).reshape(len(queries), -1)

        return run


class NumpyExact:
    """NumPy: matrix product, then partition."""

    family = "numpy"
    name = index_name = "NumPy"

    def __init__(self) -> None:
        self._database = np.empty((0, 0), dtype=np.float32)

    def build(self, database: Float32Array, seed: int) -> None:
        """Keep the matrix: there is nothing to build."""
        self._database = database

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids, one query at a time unless it is a batch."""
        database, k = self._database, min(group.k, len(self._database))
        rows = max(1, NUMPY_SCORES // len(database)) if group.manner == "batch" else 1

        def run(queries: Float32Array) -> Int64Array:
            parts = (queries[i : i + rows] for i in range(0, len(queries), rows))
            return np.concatenate([_largest(part @ database.T, k) for part in parts])

        return run


def _largest(scores: Float32Array, k: int) -> Int64Array:
    """Find the columns of the k largest scores of each row, the largest first."""
    found: Int64Array
    if k == 1:
        found = np.argmax(scores, axis=1)[:, None]
        return found
    found = np.argpartition(scores, -k, axis=1)[:, -k:]
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def own_engines(point: Point | None) -> list[Hiernorm]:
    """List our engines for a point; the exhaustive one, the judge of all others, comes first."""
    names = ["exhaustive", "cascade"] if point is None else ["exhaustive", "cascade", "paper"]
    major, alpha = (None, None) if point is None else point
    return [
        Hiernorm(f"hiernorm {name}", name, major=major, alpha=alpha, engine=name) for name in names
    ]


def panorama_methods(dim: int = 128, metric: str = "ip") -> list[Method]:
    """List Panorama at every number of levels that divides the dimensions, where FAISS has it."""
    faiss = import_optional("faiss")
    if not hasattr(faiss, f"IndexFlat{metric.upper()}Panorama"):
        return []
    return [FaissPanorama(faiss, levels, metric) for levels in PANORAMA_LEVELS if dim % levels == 0]


def graph_methods(efs: Sequence[int] = HNSW_EFS) -> list[Method]:
    """List hnswlib at every ef, over one graph, where it is installed."""
    hnswlib = import_optional("hnswlib")
    if hnswlib is None:
        return []
    graph = HnswGraph(hnswlib)
    return [Hnsw(graph, ef) for ef in efs]


def flat_method(metric: str = "ip") -> FaissFlat:
    """The baseline of all ratios; an error tells what to install where FAISS is missing."""
    return FaissFlat(import_extra("faiss", extra="bench"), metric)


def exact_peers(everything: bool) -> list[Method]:
    """List the exact peers that are installed: FAISS flat alone, or all."""
    faiss, usearch = import_optional("faiss"), import_optional("usearch.index")
    methods: list[Method] = [] if faiss is None else [FaissFlat(faiss)]
    if not everything:
        return methods
    methods += panorama_methods()
    if usearch is not None:
        methods.append(UsearchExact(usearch))
    return [*methods, NumpyExact()]


def missing_peers() -> dict[str, str]:
    """Name the peers that cannot be measured here, and why."""
    absent = "not installed (pip install 'hiernorm[bench]')"
    modules = {"FAISS": "faiss", "hnswlib": "hnswlib", "USearch": "usearch.index"}
    missing = {peer: absent for peer, name in modules.items() if import_optional(name) is None}
    faiss = import_optional("faiss")
    if faiss is not None and not hasattr(faiss, "IndexFlatIPPanorama"):
        missing["FAISS Panorama"] = f"FAISS {faiss.__version__} has no IndexFlatIPPanorama"
    return missing

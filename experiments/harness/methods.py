"""The methods that are compared: our engines and their peers, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import hiernorm
from hiernorm.bench.cases import Case, Group, Point
from hiernorm.bench.conditions import import_optional
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


class OwnEngine:
    """An engine of this package."""

    index: hiernorm.Index

    def __init__(self, engine: str, point: Point | None) -> None:
        self.family = engine
        self.name = self.index_name = f"hiernorm {engine}"
        self._point = point

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database; our build uses no chance, so the seed does not matter."""
        major, alpha = self._point if self._point is not None else (None, None)
        self.index = hiernorm.Index(database.shape[1], major=major, alpha=alpha, engine=self.family)
        self.index.add(database)

    def nbytes(self) -> int:
        """Bytes of entries, codes and tables."""
        return self.index.nbytes

    def hits(self, queries: Float32Array, group: Group) -> hiernorm.Hits:
        """Search and return the whole answer: ids, scores and certificate."""
        batch_size = None if group.manner == "batch" else 1
        return self.index.search(queries, group.k, threads=group.threads, batch_size=batch_size)

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        search, k, threads = self.index.search, group.k, group.threads
        batch_size = None if group.manner == "batch" else 1
        return lambda queries: search(queries, k, threads=threads, batch_size=batch_size).ids


class FaissFlat:
    """FAISS IndexFlatIP: the exhaustive baseline of every ratio."""

    family = "flat"
    name = index_name = "FAISS IndexFlatIP"

    def __init__(self, faiss: Any) -> None:
        self._faiss = faiss
        self._index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Copy the database."""
        self._index = self._faiss.IndexFlatIP(database.shape[1])
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

    def __init__(self, faiss: Any, levels: int) -> None:
        self.name = self.index_name = f"Panorama, {levels} levels"
        self._faiss = faiss
        self._levels = levels
        self._index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Copy the database and compute the norms of every level."""
        self._index = self._faiss.IndexFlatIPPanorama(database.shape[1], self._levels)
        self._index.add(database)

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        search, k = self._index.search, group.k
        return lambda queries: search(queries, k)[1]


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

    def __init__(self, graph: HnswGraph, ef: int) -> None:
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


def own_engines(case: Case) -> list[OwnEngine]:
    """List our engines for a case; the exhaustive one, the judge of all others, comes first."""
    names = ["exhaustive", "cascade"] if case.point is None else ["exhaustive", "cascade", "paper"]
    return [OwnEngine(name, case.point) for name in names]


def peer_methods(case: Case) -> list[Method]:
    """List the peers of a case that are installed."""
    faiss = import_optional("faiss")
    methods: list[Method] = [] if faiss is None else [FaissFlat(faiss)]
    if not case.peers:
        return methods
    if hasattr(faiss, "IndexFlatIPPanorama"):
        methods += [FaissPanorama(faiss, levels) for levels in PANORAMA_LEVELS]
    hnswlib = import_optional("hnswlib")
    if hnswlib is not None and case.graph:
        graph = HnswGraph(hnswlib)
        methods += [Hnsw(graph, ef) for ef in HNSW_EFS]
    usearch = import_optional("usearch.index")
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

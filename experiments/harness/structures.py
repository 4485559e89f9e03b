"""Structures of approximate search that are built once and searched with one setting."""

from __future__ import annotations

import hashlib
import math
import time
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from experiments.harness.methods import HNSW_EF_CONSTRUCTION, Search
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.threads import thread_count

PeerMetric = Literal["ip", "l2"]

MOST_EF = 4_000


class Structure(Protocol):
    """What is built once and searched with one setting."""

    label: str
    build_seconds: float

    def build(self, database: Float32Array, seed: int) -> None:
        """Index the database."""

    def nbytes(self) -> int | None:
        """Bytes that it holds, or None where the library does not tell."""

    def most(self) -> int:
        """The largest setting."""

    def search(self, setting: int, k: int, threads: int) -> Search:
        """The function that runs one call at a setting."""


class Graph:
    """A graph of hnswlib; its setting is ef.

    Parameters
    ----------
    hnswlib
        The module.
    links
        M.
    metric
        ``"ip"`` or ``"l2"``.
    folder
        Keeps the graph for the next run, under a digest of the vectors.
    threads
        Of the build; None takes all processors.
    """

    def __init__(
        self,
        hnswlib: Any,
        links: int,
        metric: PeerMetric = "ip",
        folder: Path | None = None,
        threads: int | None = None,
    ) -> None:
        self.label = f"M={links}"
        self.build_seconds = 0.0
        self._hnswlib = hnswlib
        self._links = links
        self._metric = metric
        self._folder = folder
        self._threads = thread_count(threads)
        self.index: Any = None

    def is_kept(self, database: Float32Array, seed: int) -> bool:
        """Whether the folder has the graph of these vectors."""
        file = self._file(database, seed)
        return file is not None and file.exists()

    def build(self, database: Float32Array, seed: int) -> None:
        """Build the graph, or load it where the same vectors were built before."""
        self.index = self._hnswlib.Index(space=self._metric, dim=database.shape[1])
        file = self._file(database, seed)
        start = time.perf_counter()
        if file is not None and file.exists():
            self.index.load_index(str(file))
        else:
            self.index.init_index(
                len(database),
                M=self._links,
                ef_construction=HNSW_EF_CONSTRUCTION,
                random_seed=seed,
            )
            self.index.add_items(database, num_threads=self._threads)
            if file is not None:
                _save(self.index, file)
        self.build_seconds = time.perf_counter() - start

    def nbytes(self) -> int:
        """Bytes of vectors and links, as they would be written to a file."""
        return int(self.index.index_file_size())

    def most(self) -> int:
        """The largest ef that is tried."""
        return MOST_EF

    def search(self, setting: int, k: int, threads: int) -> Search:
        """Set ef; return a search that yields ids, all -1 where the graph reaches fewer than k."""
        index = self.index
        index.set_ef(max(setting, k))

        def run(queries: Float32Array) -> Int64Array:
            try:
                found: Int64Array = index.knn_query(queries, k=k, num_threads=threads)[0]
            except RuntimeError:  # it raises if one of the queries gets fewer
                return np.full((len(queries), k), -1, np.int64)
            return found

        return run

    def _file(self, database: Float32Array, seed: int) -> Path | None:
        if self._folder is None:
            return None
        digest = hashlib.sha256(np.ascontiguousarray(database).data).hexdigest()[:16]
        name = f"{digest}-{self._metric}-M{self._links}-c{HNSW_EF_CONSTRUCTION}-s{seed}.hnsw"
        return self._folder / name


class Lists:
    """FAISS IVF with full vectors; its setting is nprobe."""

    def __init__(self, faiss: Any, factor: int, metric: PeerMetric = "ip") -> None:
        self.label = f"{factor} sqrt(N) lists"
        self.build_seconds = 0.0
        self._faiss = faiss
        self._factor = factor
        self._metric = metric
        self._index: Any = None

    def build(self, database: Float32Array, seed: int) -> None:
        """Train the lists on the database and fill them."""
        faiss, dim = self._faiss, database.shape[1]
        lists = max(1, min(len(database), round(self._factor * math.sqrt(len(database)))))
        metric = faiss.METRIC_INNER_PRODUCT if self._metric == "ip" else faiss.METRIC_L2
        start = time.perf_counter()
        flat = faiss.IndexFlatIP(dim) if self._metric == "ip" else faiss.IndexFlatL2(dim)
        self._index = faiss.IndexIVFFlat(flat, dim, lists, metric)
        self._index.own_fields = False
        self._flat = flat  # the lists refer to it
        self._index.cp.seed = seed
        self._index.cp.min_points_per_centroid = 1
        self._index.train(database)
        self._index.add(database)
        self.build_seconds = time.perf_counter() - start
        self.label = f"{lists:,} lists"

    def nbytes(self) -> None:
        """Unknown."""

    def most(self) -> int:
        """All lists."""
        return int(self._index.nlist)

    def search(self, setting: int, k: int, threads: int) -> Search:
        """Set nprobe; return a search that yields ids."""
        index = self._index
        index.nprobe = setting
        return lambda queries: index.search(queries, k)[1]


def _save(index: Any, file: Path) -> None:
    """Write a graph so that it is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    index.save_index(str(part))
    part.replace(file)

"""hiernorm as an algorithm of ann-benchmarks: exact search by angle or distance."""

from __future__ import annotations

from typing import Any

import numpy as np

import hiernorm

from ..base.module import BaseANN

METRICS = {"angular": "cosine", "euclidean": "l2"}
"""Names of ann-benchmarks and of hiernorm."""


class Hiernorm(BaseANN):
    """An index of hiernorm."""

    def __init__(self, metric: str, engine: str) -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"hiernorm has no metric {metric}")
        self._metric = METRICS[metric]
        self._engine = engine
        self._batch_size: int | None = None
        self._scanned: list[float] = []
        self.name = f"hiernorm({engine})"

    def fit(self, X: np.ndarray) -> None:  # noqa: N803
        """Build the index of the rows of X."""
        rows = np.asarray(X, np.float32)
        # ann-benchmarks measures one processor unless it is told to run in batch mode.
        self._index = hiernorm.Index(
            rows.shape[1], metric=self._metric, engine=self._engine, threads=1
        )
        self._index.add(rows)

    def set_query_arguments(self, batch_size: int) -> None:
        """How many queries of a batch share one pass; 0 leaves it to hiernorm."""
        self._batch_size = batch_size or None

    def query(self, q: np.ndarray, n: int) -> np.ndarray:
        """Rows of the n nearest to one query."""
        return self._index.search(q, n).ids[0]

    def batch_query(self, X: np.ndarray, n: int) -> None:  # noqa: N803
        """Find the n nearest to each row of X, with all processors."""
        hits = self._index.search(
            X, n, threads=hiernorm.threads.thread_count(None), batch_size=self._batch_size
        )
        self.res = hits.ids
        self._scanned = [float(hits.certificate.phase2_share.mean())]

    def get_additional(self) -> dict[str, Any]:
        """Share of the entries that the first scan could not rule out."""
        return {"phase2_share": self._scanned[0]} if self._scanned else {}

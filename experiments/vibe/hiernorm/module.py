"""hiernorm as an algorithm of VIBE: exact search by inner product, cosine or distance."""

from __future__ import annotations

import numpy as np

import hiernorm

from ..base.module import BaseANN

METRICS = {"ip": "ip", "normalized": "ip", "cosine": "cosine", "euclidean": "l2"}
"""Names of VIBE and of hiernorm."""


class Hiernorm(BaseANN):
    """An index of hiernorm."""

    def __init__(self, metric: str, engine: str) -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"hiernorm has no metric {metric}")
        self._metric = METRICS[metric]
        self._engine = engine
        self.name = f"hiernorm({engine})"

    def fit(self, X: np.ndarray) -> None:  # noqa: N803
        """Build the index of the rows of X, with one thread, as VIBE asks."""
        rows = np.asarray(X, np.float32)
        self._index = hiernorm.Index(
            rows.shape[1], metric=self._metric, engine=self._engine, threads=1
        )
        self._index.add(rows)

    def set_query_arguments(self, _none: int = 0) -> None:
        """Exact search has nothing to set."""

    def query(self, vector: np.ndarray, n: int) -> np.ndarray:
        """Rows of the n nearest to one query."""
        return self._index.search(vector, n).ids[0]

"""Adapters for scikit-learn: an estimator like ``NearestNeighbors``, and a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hiernorm.array_types import AnyArray, BoolArray, Float64Array, Int64Array
from hiernorm.arrays import as_count
from hiernorm.index import Index
from hiernorm.settings import Metric

MODES = ("connectivity", "distance")
METRICS: dict[str, Metric] = {"euclidean": "l2", "cosine": "cosine", "ip": "ip"}
"""Metrics of scikit-learn and of the index."""


class HNNeighbors(BaseEstimator):
    """Exact nearest neighbours, called as ``sklearn.neighbors.NearestNeighbors`` is.

    Vectors are rounded to float32; ties in distance go to the lower row.

    Parameters
    ----------
    n_neighbors
        Default number of neighbours of :meth:`kneighbors`.
    radius
        Default radius of :meth:`radius_neighbors`.
    metric
        ``"euclidean"`` and ``"cosine"`` (1 - cosine, from 0 to 2; no zero vectors): distances as in
        scikit-learn. ``"ip"``: the negated inner product, so that nearest still means smallest; it
        may be negative.
    major, alpha
        Parameters of HN vectors, as in :class:`hiernorm.Index`; omit them for other vectors.
    n_jobs
        Threads; None and -1 mean all.

    Attributes
    ----------
    n_features_in_ : int
        Dimensions of the fitted vectors.
    n_samples_fit_ : int
        Rows of the fitted vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from hiernorm.adapters import HNNeighbors
    >>> x = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> neighbours = HNNeighbors(n_neighbors=2, metric="cosine").fit(x)
    >>> distances, rows = neighbours.kneighbors([[0.0, 2.0]])
    >>> rows.tolist(), distances.round(3).tolist()
    ([[2, 1]], [[0.0, 0.2]])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "euclidean",
        major: int | None = None,
        alpha: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.major = major
        self.alpha = alpha
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> HNNeighbors:  # noqa: N803
        """Remember the rows of ``X`` ``(n, d)``; ``y`` is ignored."""
        rows = validate_data(self, X, dtype=[np.float32, np.float64], ensure_min_features=2)
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {self.metric!r}")
        threads = None if self.n_jobs in (None, -1) else self.n_jobs
        index = Index(
            rows.shape[1],
            major=self.major,
            alpha=self.alpha,
            metric=METRICS[self.metric],
            threads=threads,
        )
        index.add(rows)
        self._index = index
        self.n_samples_fit_ = len(index)
        return self

    def kneighbors(
        self,
        X: Any = None,  # noqa: N803
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> Int64Array | tuple[Float64Array, Int64Array]:
        """Distances and rows ``(m, k)`` of the nearest, nearest first.

        Without ``X`` the neighbours of each fitted row are returned, without the row itself.
        """
        check_is_fitted(self, "n_samples_fit_")
        k = as_count("n_neighbors", self.n_neighbors if n_neighbors is None else n_neighbors)
        most = self.n_samples_fit_ - (X is None)
        if k > most:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {_count(X, most)}"
            )
        hits = self._index.search(self._queries(X), k + (X is None))
        rows, scores = hits.ids, hits.scores
        if X is None:
            others = _without_self(rows)
            rows, scores = rows[others].reshape(-1, k), scores[others].reshape(-1, k)
        return (self._distances(scores), rows) if return_distance else rows

    def radius_neighbors(
        self,
        X: Any = None,  # noqa: N803
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = True,
    ) -> npt.NDArray[np.object_] | tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
        """All neighbours within ``radius``: an array of distances and one of rows per query.

        They always come nearest first; ``sort_results`` is there for scikit-learn's signature.
        """
        check_is_fitted(self, "n_samples_fit_")
        reach = float(self.radius if radius is None else radius)
        if np.isnan(reach):
            raise ValueError("radius must be a number, got NaN")
        queries = self._queries(X)
        distances = np.empty(len(queries), dtype=object)
        rows = np.empty(len(queries), dtype=object)
        for query, (ids, scores) in enumerate(self._index.range(queries, self._least_score(reach))):
            away = self._distances(scores)
            near = away <= reach
            if X is None:
                near &= ids != query
            distances[query], rows[query] = away[near], ids[near]
        return (distances, rows) if return_distance else rows

    def kneighbors_graph(
        self,
        X: Any = None,  # noqa: N803
        n_neighbors: int | None = None,
        mode: str = "connectivity",
    ) -> csr_matrix:
        """The graph ``(m, n)`` of k neighbours, sparse: ones, or distances with ``"distance"``."""
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
        distances, rows = self.kneighbors(X, n_neighbors)
        values = distances if mode == "distance" else np.ones_like(distances)
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        return csr_matrix(
            (values.ravel(), rows.ravel(), starts), shape=(len(rows), self.n_samples_fit_)
        )

    def _queries(self, X: Any) -> AnyArray:  # noqa: N803
        if X is None:
            return self._index.reconstruct(np.arange(self.n_samples_fit_))
        queries: AnyArray = validate_data(self, X, dtype=[np.float32, np.float64], reset=False)
        return queries

    def _distances(self, scores: Float64Array) -> Float64Array:
        """Distances of scores, as the metric says; rounding never makes a cosine distance < 0."""
        if self.metric == "cosine":
            return np.clip(1 - scores, 0, 2)
        away = 0.0 - scores  # not -scores: a distance of -0 looks wrong
        distances: Float64Array = np.sqrt(away) if self.metric == "euclidean" else away
        return distances

    def _least_score(self, reach: float) -> float:
        """A score that nothing within ``reach`` falls below.

        It is a little lower than the formula, since distances round; they are compared again.
        """
        if self.metric == "cosine":
            return 1 - reach - 1e-9
        if self.metric == "ip":
            return -reach
        return -(max(reach, 0.0) ** 2) * (1 + 1e-9)


class HNNeighborsTransformer(TransformerMixin, HNNeighbors):
    """Transforms vectors into the sparse graph of their exact neighbours, in a pipeline.

    As scikit-learn's ``KNeighborsTransformer`` in mode ``"distance"``: a row holds
    ``n_neighbors + 1`` distances, since a fitted vector finds itself too. The next step takes
    ``metric="precomputed"``, which needs distances that are not negative: not those of ``"ip"``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hiernorm.adapters import HNNeighborsTransformer
    >>> x, y = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]]), [0, 0, 1, 1]
    >>> pipeline = make_pipeline(
    ...     HNNeighborsTransformer(n_neighbors=2),
    ...     KNeighborsClassifier(n_neighbors=1, metric="precomputed"),
    ... )
    >>> pipeline.fit(x, y).predict([[3.0, 0.0], [0.0, 0.5]]).tolist()
    [0, 1]
    """

    def fit(self, X: Any, y: Any = None) -> HNNeighborsTransformer:  # noqa: N803
        """Remember the rows of ``X`` ``(n, d)``; ``y`` is ignored."""
        super().fit(X, y)
        self._n_features_out = self.n_samples_fit_
        return self

    def transform(self, X: Any) -> csr_matrix:  # noqa: N803
        """The distances ``(m, n)`` of each row's ``n_neighbors + 1`` nearest, sparse."""
        check_is_fitted(self, "n_samples_fit_")
        return self.kneighbors_graph(
            X, min(self.n_neighbors + 1, self.n_samples_fit_), mode="distance"
        )


def _without_self(rows: Int64Array) -> BoolArray:
    """All but one hit of each row: itself, or the last one if equal rows displaced it."""
    others: BoolArray = rows != np.arange(len(rows))[:, np.newaxis]
    others[others.all(axis=1), -1] = False
    return others


def _count(X: Any, fitted: int) -> int:  # noqa: N803
    return fitted if X is None else len(X)

"""An index in FAISS's shape that keeps ids itself, and knows HN vectors."""

from __future__ import annotations

import numpy.typing as npt

from hiernorm.adapters.faiss_shaped.base import METRIC_INNER_PRODUCT, Index
from hiernorm.arrays import as_ids


class IndexHN(Index):
    """Exact search by inner product or distance, called as FAISS is.

    Differences from ``faiss.IndexFlatIP`` and ``faiss.IndexFlatL2``: scores are canonical, so the
    answer is the same on every machine; ties go to the lower id; ids stay with their vectors when
    others are removed, and :meth:`add_with_ids` takes ids from 0 up, each once; hits of a range
    come best first.

    Parameters
    ----------
    d
        Number of dimensions.
    metric
        ``METRIC_INNER_PRODUCT`` (0), scores from the largest down, or ``METRIC_L2`` (1), squared
        Euclidean distances from the smallest up.
    major, alpha
        Parameters of HN vectors, as in :class:`hiernorm.Index`; omit them for other vectors.
    threads
        As in :class:`hiernorm.Index`.

    Examples
    --------
    >>> import numpy as np
    >>> from hiernorm.adapters import IndexHN
    >>> index = IndexHN(3)  # was: faiss.IndexFlatIP(3)
    >>> index.add(np.eye(3, dtype=np.float32))
    >>> D, I = index.search(np.float32([[0, 0.6, 0.8]]), 2)
    >>> D.tolist(), I.tolist()
    ([[0.800000011920929, 0.6000000238418579]], [[2, 1]])
    >>> nearest = IndexHN(3, metric=1)  # was: faiss.IndexFlatL2(3)
    >>> nearest.add(np.eye(3, dtype=np.float32))
    >>> nearest.search(np.float32([[0, 0, 2]]), 2)[0].tolist()
    [[1.0, 5.0]]
    """

    _range_is_sorted = True

    def __init__(
        self,
        d: int,
        metric: int = METRIC_INNER_PRODUCT,
        *,
        major: int | None = None,
        alpha: float | str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(d, metric, major=major, alpha=alpha, threads=threads)

    def add_with_ids(self, x: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add ``(n, d)`` vectors under ``(n,)`` ids that are not in the index yet."""
        self._index.add(self._rows("vectors", x), as_ids(ids))
        self._forget_entry_ids()

    def merge_from(self, other: Index, add_id: int = 0) -> None:
        """Move all entries of ``other`` here; their ids grow by ``add_id``."""
        self.check_compatible_for_merge(other)
        ids = other._entry_ids()
        self.add_with_ids(other.reconstruct_batch(ids), ids + add_id)
        other.reset()

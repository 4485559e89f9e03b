"""An index with the methods of FAISS: replacing ``IndexFlatIP`` or ``IndexFlatL2`` is one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm._files import replacing
from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_count, as_ids, as_rows
from hiernorm.index import Index
from hiernorm.settings import Metric

METRIC_INNER_PRODUCT, METRIC_L2 = 0, 1
"""The constants of FAISS."""
METRICS: dict[int, Metric] = {METRIC_INNER_PRODUCT: "ip", METRIC_L2: "l2"}
MISSING = np.finfo(np.float32).max
"""The distance that FAISS returns if there are fewer than k entries; minus it is the score."""
FORMAT = "hiernorm IndexHN 1"


class IndexHN:
    """Exact search by inner product or distance, called as FAISS is.

    Differences from ``faiss.IndexFlatIP`` and ``faiss.IndexFlatL2``: scores are canonical, so the
    answer is the same on every machine; ties go to the lower id; ids stay with their vectors when
    others are removed (as in ``faiss.IndexIDMap``); hits of a range come best first. Removal and
    filters copy the remaining entries: use ``hiernorm.Database`` for data that change often.

    Parameters
    ----------
    d
        Number of dimensions.
    metric
        ``faiss.METRIC_INNER_PRODUCT`` (0), scores from the largest down, or ``faiss.METRIC_L2``
        (1), squared Euclidean distances from the smallest up.
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

    is_trained = True

    def __init__(
        self,
        d: int,
        metric: int = METRIC_INNER_PRODUCT,
        *,
        major: int | None = None,
        alpha: float | None = None,
        threads: int | None = None,
    ) -> None:
        self.d = as_count("d", d, least=2)
        if metric not in METRICS:
            raise ValueError(
                f"metric must be {METRIC_INNER_PRODUCT} (faiss.METRIC_INNER_PRODUCT) or "
                f"{METRIC_L2} (faiss.METRIC_L2), got {metric!r}"
            )
        self.metric_type = metric
        self._index = Index(d, metric=METRICS[metric], major=major, alpha=alpha, threads=threads)
        self._next_id = 0

    @property
    def ntotal(self) -> int:
        """Entries in the index."""
        return len(self._index)

    def __len__(self) -> int:
        return self.ntotal

    def add(self, x: npt.ArrayLike) -> None:
        """Add ``(n, d)`` vectors; their ids count on from the largest so far."""
        rows = as_rows("vectors", x, self.d)
        self.add_with_ids(rows, np.arange(self._next_id, self._next_id + len(rows)))

    def add_with_ids(self, x: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add ``(n, d)`` vectors under ``(n,)`` ids that are not in the index yet."""
        rows = as_rows("vectors", x, self.d)
        given = as_ids(ids, len(rows))
        self._index.add(rows, given)
        if len(given):
            self._next_id = max(self._next_id, int(given.max()) + 1)

    def search(
        self, x: npt.ArrayLike, k: int, *, params: Any = None
    ) -> tuple[Float32Array, Int64Array]:
        """Scores or distances, and ids, ``(m, k)`` of the k best entries of each query, best first.

        Parameters
        ----------
        x
            ``(m, d)`` queries.
        k
            Number of hits. If there are fewer entries, ids are -1, and scores the lowest float32 or
            distances the highest.
        params
            An object with ``sel``, as ``faiss.SearchParameters(sel=...)``, or what ``sel`` may be:
            see :meth:`remove_ids`. Only entries that it selects are searched; still exact.
        """
        hits = self._selected(params).search(x, k)
        scores = np.where(hits.ids < 0, -MISSING, hits.scores)
        return self._as_faiss(scores), hits.ids

    def range_search(
        self, x: npt.ArrayLike, thresh: float, *, params: Any = None
    ) -> tuple[Int64Array, Float32Array, Int64Array]:
        """All entries that score above ``thresh``, or are nearer than it: their squared distance.

        Returns offsets ``(m + 1,)``, scores or distances, and ids.
        """
        least = -thresh if self.metric_type == METRIC_L2 else thresh
        hits = self._selected(params).range(x, least)
        above = hits.scores > least  # ours are from the threshold up, those of FAISS above it
        kept = np.concatenate(([0], np.cumsum(above)))[hits.offsets]
        return kept, self._as_faiss(hits.scores[above]), hits.ids[above]

    def _as_faiss(self, scores: Float64Array) -> Float32Array:
        """Scores as FAISS returns them; distances are never -0."""
        values = 0.0 - scores if self.metric_type == METRIC_L2 else scores
        return values.astype(np.float32)

    def reconstruct(self, key: int) -> Float32Array:
        """The vector ``(d,)`` of one id; KeyError if there is none."""
        (row,) = self._index.reconstruct([key])
        vector: Float32Array = row
        return vector

    def reconstruct_batch(self, keys: npt.ArrayLike) -> Float32Array:
        """The vectors ``(n, d)`` of ids."""
        return self._index.reconstruct(keys)

    def remove_ids(self, sel: Any) -> int:
        """Remove entries; returns how many.

        Parameters
        ----------
        sel
            Ids ``(n,)``, of which some may not exist; a function from ids ``(n,)`` to booleans
            ``(n,)``; or a selector with ``is_member(id)``, such as those of FAISS.
        """
        removed = self._chosen(sel)
        if removed.any():
            self._index = self._copy(self._index.ids[~removed])
        return int(removed.sum())

    def reset(self) -> None:
        """Remove everything."""
        self._index = self._index._sibling()
        self._next_id = 0

    def _selected(self, params: Any) -> Index:
        """An index of the entries that ``params`` selects."""
        sel = getattr(params, "sel", params)
        if sel is None:
            return self._index
        chosen = self._chosen(sel)
        return self._index if chosen.all() else self._copy(self._index.ids[chosen])

    def _copy(self, ids: Int64Array) -> Index:
        copy = self._index._sibling()
        copy.add(self._index.reconstruct(ids), ids)
        return copy

    def _chosen(self, sel: Any) -> BoolArray:
        """Which entries, in order of insertion, a selector selects."""
        ids = self._index.ids
        if hasattr(sel, "is_member"):
            return np.fromiter((sel.is_member(int(i)) for i in ids), np.bool_, len(ids))
        if not callable(sel):
            return np.isin(ids, as_ids(sel))
        chosen = np.asarray(sel(ids))
        if chosen.shape != ids.shape or chosen.dtype != np.bool_:
            raise ValueError(
                f"a selecting function must return {len(ids)} booleans, "
                f"got shape {chosen.shape}, dtype {chosen.dtype}"
            )
        return chosen


def write_index(index: IndexHN, fname: str | os.PathLike[str]) -> None:
    """Write an index to a file, as a whole or not at all.

    The file is a NumPy archive (``ids``, ``rows`` and the parameters): no pickle inside.
    """
    path = Path(fname)
    settings = {
        "format": FORMAT,
        "d": index.d,
        "metric": index.metric_type,
        "major": index._index.major if index._index.alpha is not None else None,
        "alpha": index._index.alpha,
        "next_id": index._next_id,
    }
    ids = index._index.ids
    with replacing(path) as fresh, fresh.open("wb") as file:
        np.savez(file, settings=json.dumps(settings), ids=ids, rows=index._index.reconstruct(ids))


def read_index(fname: str | os.PathLike[str]) -> IndexHN:
    """Read an index that :func:`write_index` wrote.

    Raises FileNotFoundError for a missing file, ValueError for a damaged one or another format.
    """
    path = Path(fname)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        # Opened here: NumPy leaves a file open that it cannot make sense of.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            settings = json.loads(str(archive["settings"]))
            ids, rows = archive["ids"], archive["rows"]
        if settings["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT!r}, got {settings['format']!r}")
        names = ("d", "metric", "major", "alpha")
        index = IndexHN(**{name: settings[name] for name in names})
        index.add_with_ids(rows, ids)
        index._next_id = as_count("next_id", settings["next_id"], least=0)
    except Exception as error:  # zipfile, zlib, json and NumPy each have their own
        raise ValueError(f"{path} is no index of write_index, or it is damaged: {error}") from error
    return index

"""What all FAISS-shaped indexes share: search, ranges, filters and vectors by id.

An index has entries of a :class:`hiernorm.Index`, under ids of their own. What FAISS calls labels
are the ids that a user sees. A subclass says which label belongs to which entry; by default they
are the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import hiernorm.index
from hiernorm.adapters.faiss_shaped.errors import ArgumentError, UnknownIdError
from hiernorm.adapters.faiss_shaped.selectors import chosen, selector_of
from hiernorm.adapters.faiss_shaped.threads import omp_get_max_threads
from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array
from hiernorm.arrays import as_count, as_ids, as_rows
from hiernorm.settings import Metric

METRIC_INNER_PRODUCT, METRIC_L2 = 0, 1
"""The constants of FAISS."""
METRICS: dict[int, Metric] = {METRIC_INNER_PRODUCT: "ip", METRIC_L2: "l2"}
MISSING = np.finfo(np.float32).max
"""The distance that FAISS returns if there are fewer than k entries; minus it is the score."""
LARGEST = np.finfo(np.float64).max

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class Index:
    """The methods of ``faiss.Index``, with exact and reproducible answers.

    ``D`` holds inner products from the largest down, or squared Euclidean distances from the
    smallest up; ``I`` holds ids. Filters limit the scan itself: nothing is copied.
    """

    is_trained = True
    verbose = False
    metric_arg = 0.0
    _range_is_sorted = False
    """Whether hits of a range come best first, or in order of insertion, as those of FAISS do."""
    _entry_ids_kept: Int64Array | None = None

    def __init__(
        self,
        d: int,
        metric: int,
        *,
        major: int | None = None,
        alpha: float | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.d = as_count("d", d, least=2)
        if metric not in METRICS:
            raise ValueError(
                f"metric must be {METRIC_INNER_PRODUCT} (faiss.METRIC_INNER_PRODUCT) or "
                f"{METRIC_L2} (faiss.METRIC_L2), got {metric!r}"
            )
        self.metric_type = metric
        self._index = hiernorm.index.Index(
            d, metric=METRICS[metric], major=major, alpha=alpha, threads=threads
        )

    @property
    def ntotal(self) -> int:
        """Entries in the index."""
        return len(self._engine())

    def __len__(self) -> int:
        return self.ntotal

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, ntotal={self.ntotal})"

    # Changes.

    def train(self, x: npt.ArrayLike) -> None:
        """Do nothing but check ``x`` ``(n, d)``: there is nothing to train."""
        self._rows("vectors", x)

    def add(self, x: npt.ArrayLike) -> None:
        """Add ``(n, d)`` vectors; their ids count on."""
        self._engine().add(self._rows("vectors", x))
        self._forget_entry_ids()

    def remove_ids(self, sel: Any) -> int:
        """Remove entries, without a copy of the others; returns how many.

        Parameters
        ----------
        sel
            Ids ``(n,)``, of which some may not exist; a selector, ours or one of FAISS; or a
            function from ids ``(n,)`` to booleans ``(n,)``.
        """
        return self._remove(chosen(sel, self._labels()))

    def _remove(self, removed: BoolArray) -> int:
        """Remove the entries that are marked, in order of :meth:`_entry_ids`."""
        entries = self._entry_ids()[removed]
        if len(entries):
            self._engine().delete(entries)
            self._forget_entry_ids()
        return len(entries)

    def reset(self) -> None:
        """Remove everything; ids count from 0 again."""
        self._index = self._index._sibling()
        self._forget_entry_ids()

    def check_compatible_for_merge(self, other: Index) -> None:
        """Raise RuntimeError unless the entries of ``other`` can be moved here."""
        if other is self:
            raise RuntimeError("an index cannot be merged with itself")
        if type(other) is not type(self):
            raise RuntimeError(
                "can only merge indexes of the same type: "
                f"this is {type(self).__name__}, the other {type(other).__name__}"
            )
        if (other.d, other.metric_type) != (self.d, self.metric_type):
            raise RuntimeError(
                f"can only merge indexes of one dimension and metric: this has d={self.d}, "
                f"metric {self.metric_type}, the other d={other.d}, metric {other.metric_type}"
            )

    # Search.

    def search(
        self,
        x: npt.ArrayLike,
        k: int,
        params: Any = None,
        D: Float32Array | None = None,  # noqa: N803
        I: Int64Array | None = None,  # noqa: E741, N803
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
            An object with ``sel``, as ``SearchParameters(sel=...)``, or what ``sel`` may be: see
            :meth:`remove_ids`. Only entries that it selects are searched; still exact.
        D, I
            Arrays ``(m, k)``, float32 and int64, that the results are written to.
        """
        distances, entries = self._nearest(x, k, params)
        return _into("D", D, distances), _into("I", I, self._labels_of(entries))

    def search_and_reconstruct(
        self,
        x: npt.ArrayLike,
        k: int,
        params: Any = None,
        D: Float32Array | None = None,  # noqa: N803
        I: Int64Array | None = None,  # noqa: E741, N803
        R: Float32Array | None = None,  # noqa: N803
    ) -> tuple[Float32Array, Int64Array, Float32Array]:
        """What :meth:`search` returns, and the vectors ``(m, k, d)``; NaN if there are fewer."""
        distances, entries = self._nearest(x, k, params)
        rows = np.full((*entries.shape, self.d), np.nan, np.float32)
        rows[entries >= 0] = self._engine().reconstruct(entries[entries >= 0])
        labels = self._labels_of(entries)
        return _into("D", D, distances), _into("I", I, labels), _into("R", R, rows)

    def assign(self, x: npt.ArrayLike, k: int = 1, labels: Int64Array | None = None) -> Int64Array:
        """Only the ids ``(m, k)`` of :meth:`search`."""
        return _into("labels", labels, self.search(x, k)[1])

    def range_search(
        self, x: npt.ArrayLike, thresh: float, params: Any = None
    ) -> tuple[npt.NDArray[np.uint64], Float32Array, Int64Array]:
        """All entries that score above ``thresh``, or are nearer than it: their squared distance.

        Returns offsets ``lims`` ``(m + 1,)``, scores or distances, and ids: those of query i are at
        ``lims[i]:lims[i + 1]``. The threshold is rounded to float32 and compared with the values
        that are returned.
        """
        with np.errstate(over="ignore"):
            limit = np.float32(thresh)
        by_distance = self.metric_type == METRIC_L2
        # Rounding to float32 keeps order: what is inside the limit then, scores at least this.
        least = float(np.clip(np.float64(-limit if by_distance else limit), -LARGEST, LARGEST))
        queries = self._rows("queries", x)
        hits = self._engine().range(
            queries, least, where=self._where(params), threads=self._threads()
        )
        values = self._as_faiss(hits.scores)
        inside = values < limit if by_distance else values > limit
        lims = np.concatenate(([0], np.cumsum(inside)))[hits.offsets]
        values, entries = values[inside], hits.ids[inside]
        if not self._range_is_sorted:
            order = np.lexsort((entries, np.repeat(np.arange(len(queries)), np.diff(lims))))
            values, entries = values[order], entries[order]
        return lims.astype(np.uint64), values, self._labels_of(entries)

    def _nearest(self, x: npt.ArrayLike, k: int, params: Any) -> tuple[Float32Array, Int64Array]:
        """Scores or distances, and entries, of the k best."""
        try:
            count = as_count("k", k)
        except ValueError as error:
            raise ArgumentError(*error.args) from None
        hits = self._engine().search(
            self._rows("queries", x), count, where=self._where(params), threads=self._threads()
        )
        return self._as_faiss(np.where(hits.ids < 0, -MISSING, hits.scores)), hits.ids

    def _as_faiss(self, scores: Float64Array) -> Float32Array:
        """Scores as FAISS returns them; distances are never -0."""
        values = 0.0 - scores if self.metric_type == METRIC_L2 else scores
        with np.errstate(over="ignore"):
            return values.astype(np.float32)

    def _where(self, params: Any) -> Int64Array | None:
        """The entries to which ``params`` limits a search."""
        sel = selector_of(params)
        if sel is None:
            return None
        selected = chosen(sel, self._labels())
        return None if selected.all() else self._entry_ids()[selected]

    def _threads(self) -> int:
        own = self._engine()._settings.threads
        return omp_get_max_threads() if own is None else own

    def _rows(self, name: str, x: npt.ArrayLike) -> Float32Array:
        try:
            return as_rows(name, x, self.d)
        except ValueError as error:
            raise ArgumentError(*error.args) from None

    # Vectors by id.

    def reconstruct(self, key: int, x: Float32Array | None = None) -> Float32Array:
        """The vector ``(d,)`` of one id; an error, KeyError and RuntimeError, if there is none."""
        return _into("x", x, self._vectors(as_ids(key))[0])

    def reconstruct_batch(self, keys: npt.ArrayLike, x: Float32Array | None = None) -> Float32Array:
        """The vectors ``(n, d)`` of ids ``(n,)``."""
        return _into("x", x, self._vectors(as_ids(keys)))

    def reconstruct_n(
        self, n0: int = 0, ni: int = -1, x: Float32Array | None = None
    ) -> Float32Array:
        """The vectors ``(ni, d)`` of ids ``n0`` to ``n0 + ni - 1``; -1 is ``ntotal - n0``."""
        count = self.ntotal - n0 if ni == -1 else as_count("ni", ni, least=0)
        return _into("x", x, self._vectors(np.arange(n0, n0 + count)))

    def _vectors(self, labels: Int64Array) -> Float32Array:
        try:
            return self._engine().reconstruct(self._entries_with(labels))
        except KeyError as error:
            raise UnknownIdError(*error.args) from None

    # Labels and entries.

    def _engine(self) -> hiernorm.index.Index:
        """What has the entries."""
        return self._index

    def _entry_ids(self) -> Int64Array:
        """The ids ``(n,)`` of the entries, ascending: in order of insertion, if they count on."""
        if self._entry_ids_kept is None:
            self._entry_ids_kept = self._engine().ids
        return self._entry_ids_kept

    def _forget_entry_ids(self) -> None:
        self._entry_ids_kept = None

    def _labels(self) -> Int64Array:
        """The labels ``(n,)`` of all entries, in order of :meth:`_entry_ids`."""
        return self._entry_ids()

    def _labels_of(self, entries: Int64Array) -> Int64Array:
        """The labels of entries, in any shape; -1 stays."""
        return entries

    def _entries_with(self, labels: Int64Array) -> Int64Array:
        """The entries ``(n,)`` that labels ``(n,)`` stand for; KeyError for an unknown one."""
        return labels


def _into(name: str, out: _Array | None, values: _Array) -> _Array:
    """``values``, written to ``out`` if the caller gave one."""
    if out is None:
        return values
    if getattr(out, "shape", None) != values.shape or out.dtype != values.dtype:
        raise ArgumentError(
            f"{name} must be an array of {values.dtype} with shape {values.shape}, "
            f"got {getattr(out, 'dtype', type(out).__name__)} {getattr(out, 'shape', '')}"
        )
    out[...] = values
    return out

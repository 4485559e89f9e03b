"""What an index, a database and a sharded database have in common: parameters, keys, changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from hiernorm.array_types import BoolArray, Int64Array
from hiernorm.arrays import as_ids, is_id
from hiernorm.payload.answers import EntryPayload, holds_key, keys_of, visible_columns
from hiernorm.progress import ProgressCallback
from hiernorm.settings import IndexSettings, Metric

T = TypeVar("T")


class SearchableBase(ABC):
    """The part of :class:`hiernorm.Searchable` that is the same wherever entries are kept."""

    _settings: IndexSettings

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self._settings.dim

    @property
    def major(self) -> int | None:
        """K, as it was given; None: each segment chooses it from its entries."""
        return self._settings.major

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""
        return self._settings.alpha

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""
        return self._settings.metric

    @property
    @abstractmethod
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""
        return self._with_payload(lambda payload: payload.string_keys)

    @property
    def keys(self) -> list[str]:
        """The string keys of all entries, in the order of :attr:`ids`."""
        ids = self.ids
        return self._with_payload(lambda payload: keys_of(payload, ids).tolist())

    @property
    def columns(self) -> dict[str, str]:
        """The payload columns: name to type, such as ``int64``, ``string`` or ``date``."""
        return self._with_payload(visible_columns)

    def __contains__(self, id: object) -> bool:
        if isinstance(id, str):
            return self._with_payload(lambda payload: holds_key(payload, id))
        return is_id(id) and bool(self._holds(as_ids(id))[0])

    def payload(
        self,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """The payload of ``ids`` as a ``pyarrow.Table``, in their order.

        Parameters
        ----------
        ids
            Ids, or string keys if there are any. By default all :attr:`ids`.
        columns
            Names of payload columns; by default all of them.

        Returns
        -------
        A table with the column ``id``, with ``key`` if there are string keys, and with the columns.
        Missing values are null.

        Raises
        ------
        KeyError
            Naming the first id that does not exist.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2, string_keys=True)
        >>> index.add([[1, 0], [0, 1]], ids=["a", "b"], payload={"year": [2019, 2021]})
        2
        >>> index.payload(["b"]).select(["key", "year"]).to_pylist()
        [{'key': 'b', 'year': 2021}]
        >>> index.search([1, 1], k=2, where="year >= 2020").keys.tolist()
        [['b', None]]
        """
        return self._payload_table(ids, columns)

    def add(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors; all of them, or none if one is not acceptable.

        Parameters
        ----------
        x
            ``(n, d)`` or ``(d,)``; anything but float32 is rounded to float32 first. Or the name of
            a ``.npy``, ``.npz``, ``.safetensors`` or ``.parquet`` file; or an iterator of arrays
            ``(n, d)`` or of pairs of ids and rows, or of ids, rows and payload. In files with
            names, vectors are called ``vectors`` (or are the only matrix) and ids ``ids``. A
            database takes files and iterators that are larger than memory.
        ids
            ``(n,)`` integers from 0 up that are not used yet. By default the ids of the source, or
            the integers that follow the largest id ever used. With string keys, ``n`` strings.
        payload
            Named columns with a value per vector: an Arrow table, a pandas or polars frame, a dict
            of columns, a list of dicts or the name of a Parquet file. If ``x`` is a Parquet file,
            True or a list of names takes columns of that file. Values may be missing (None).
            Columns are numbers, strings, booleans, dates or timestamps and keep their type.
        progress
            Called with the number of vectors added so far and the total, or None if unknown.

        Returns
        -------
        The number of vectors added.

        Raises
        ------
        ValueError
            For NaN, infinity, a wrong number of dimensions, an id that is negative or exists
            already, or (cosine) a zero vector.
        TypeError
            For a payload column of another type than before, or of one that is not stored.
        hiernorm.DatabaseError, OSError
            Of a database: if another process is writing, or the disk fails. In all cases nothing
            has changed.
        """
        return self._insert(x, ids, payload, progress, replace=False)

    def upsert(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors, replacing entries with the same ids; parameters as for :meth:`add`.

        The payload of an entry is replaced too: columns that are not given are null.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0, 1]])
        2
        >>> index.upsert([[0.6, 0.8], [0.8, 0.6]], ids=[1, 2])
        2
        >>> index.ids.tolist(), index.search([0, 1], k=1).ids.tolist()
        ([0, 1, 2], [[1]])
        """
        return self._insert(x, ids, payload, progress, replace=True)

    @abstractmethod
    def _insert(
        self, x: Any, ids: Any, payload: Any, progress: ProgressCallback | None, *, replace: bool
    ) -> int:
        """Add vectors, or replace entries, as one change; returns how many."""

    @abstractmethod
    def _holds(self, ids: Int64Array) -> BoolArray:
        """Which of ``ids`` are there."""

    @abstractmethod
    def _with_payload(self, act: Callable[[EntryPayload], T]) -> T:
        """The result of ``act`` on the payload of what a search sees now."""

    @abstractmethod
    def _payload_table(self, ids: Any, columns: Sequence[str] | None) -> Any:
        """The table that :meth:`payload` returns."""

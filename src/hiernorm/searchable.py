"""What can be searched: the interface of an index, a database and a sharded database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.hits import Hits, RangeHits
from hiernorm.progress import ProgressCallback
from hiernorm.settings import Metric
from hiernorm.verification import Verification


@runtime_checkable
class Searchable(Protocol):
    """Entries (id, vector) and exact search over them, wherever they are kept.

    :class:`hiernorm.Index`, :class:`hiernorm.Database` and
    :class:`hiernorm.distributed.ShardedDatabase` are such. The same entries have the same answers
    in all of them, bit for bit, and the same digest. Ids are integers from 0 up; an entry that
    comes without an id gets the one that follows the largest id ever used.

    Examples
    --------
    >>> import hiernorm
    >>> def nearest(entries: hiernorm.Searchable, q, even: bool = False) -> list[int]:
    ...     where = (lambda ids: ids % 2 == 0) if even else None
    ...     ids, scores = entries.search(q, k=1, where=where)
    ...     return ids[:, 0].tolist()
    >>> index = hiernorm.Index(dim=2)
    >>> index.add([[1, 0], [0, 1]])
    2
    >>> isinstance(index, hiernorm.Searchable), nearest(index, [0, 1]), nearest(index, [0, 1], True)
    (True, [1], [0])
    """

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""

    @property
    def metric(self) -> Metric:
        """``"ip"``, ``"cosine"`` or ``"l2"``."""

    @property
    def major(self) -> int | None:
        """K; None while it is not known, or not the same everywhere."""

    @property
    def alpha(self) -> float | None:
        """The energy split of HN vectors; None for plain ones."""

    @property
    def ids(self) -> Int64Array:
        """All ids ``(n,)`` in ascending order."""

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and entries."""

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings: ``ids`` below are then such, or integers."""

    @property
    def columns(self) -> dict[str, str]:
        """The payload columns: name to type."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        *,
        where: Any = None,
        beta: float | None = None,
        batch_size: int | None = None,
    ) -> Hits:
        """The k best entries of each query, best first; see :meth:`hiernorm.Index.search`."""

    def range(self, q: npt.ArrayLike, threshold: float, *, where: Any = None) -> RangeHits:
        """Every entry with score >= threshold, best first."""

    def reconstruct(self, ids: npt.ArrayLike | Sequence[str]) -> Float32Array:
        """The vectors of ``ids``, as they were added; KeyError names the first unknown id."""

    def payload(
        self,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """The payload of ``ids`` as an Arrow table; see :meth:`hiernorm.Database.payload`."""

    def verify(self, q: npt.ArrayLike, hits: Hits, *, where: Any = None) -> Verification:
        """Compare an answer with exhaustive search and list the differences."""

    def add(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors, all or none; returns how many. See :meth:`hiernorm.Database.add`."""

    def upsert(
        self,
        x: Any,
        ids: npt.ArrayLike | Sequence[str] | None = None,
        *,
        payload: Any = None,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Add vectors, replacing entries with the same ids; returns how many."""

    def check(self) -> Verification:
        """Read all files and list what is not as it was written."""

    def delete(self, ids: npt.ArrayLike | Sequence[str], *, ignore_missing: bool = False) -> None:
        """Delete entries; KeyError names the first id that is not there, unless ignored."""

"""What a search proved, and the work it took."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiernorm.array_types import BoolArray, Float32Array, Float64Array, Int64Array

STEPS = ("cells", "scanned", "sifted", "tightened", "settled")
"""The steps of the cascade that a certificate counts: what *skip cells* left, what *scan* read,
what *sift* and *tighten* left, and what *settle* computed. *Seed* and *weigh* settle entries early;
they are in the last counts."""


def read_stats(stats: bytes) -> tuple[Int64Array, Float64Array]:
    """What the core says of a search: work ``(m, 5)``, in the order of STEPS, and skipped bounds.

    The core packs both as they lie in its memory (``SearchStats`` in ``search/request.hpp``):
    arrays are made of them when somebody looks.
    """
    values = np.frombuffer(stats, np.int64).reshape(-1, len(STEPS) + 1)
    return values[:, :-1].copy(), values[:, -1].copy().view(np.float64)


def no_stats(queries: int) -> bytes:
    """The same of searches that have done nothing."""
    values = np.zeros((queries, len(STEPS) + 1), np.int64)
    values[:, -1] = np.array(-np.inf).view(np.int64)
    return values.tobytes()


@dataclass(frozen=True)
class QueryCertificate:
    """The certificate of one query; see :class:`Certificate` for the fields."""

    entries: int
    cells: int
    scanned: int
    sifted: int
    tightened: int
    settled: int
    kth_score: float
    skipped_bound: float
    exact: bool
    gap: float
    digest: str
    checked: str = ""

    def __str__(self) -> str:
        proof = "exact" if self.exact else f"within {self.gap:.3g} of exact"
        return (
            f"{proof}: {self.entries:,} entries, {self.scanned:,} scanned, "
            f"{self.sifted:,} sifted, {self.tightened:,} tightened, {self.settled:,} settled; "
            f"k-th score {self.kth_score:.9g}, nothing skipped exceeds {self.skipped_bound:.9g}; "
            f"database {self.digest[:12]}"
            + (f", files checked: {self.checked}" if self.checked else "")
        )


class Certificate:
    """Per query: what was proved about the answer, and what the proof cost.

    Attributes
    ----------
    entries : int
        Entries in the index when the search began.
    work : dict of str to (m,) int64
        What each step of the cascade did: ``cells`` that were not skipped (0 where the index has
        none or did not use them), entries ``scanned`` (whose major was read; the others lay in
        cells that could not win), ``sifted`` (entries that the major could not rule out: the
        paper's Phase 2), ``tightened`` (of those, entries that the minor codes could not rule out)
        and ``settled`` (canonical scores computed). The counts tell how this answer was found:
        they may differ with the order of insertion and the batch, not with the instruction set.
        :func:`hiernorm.reference.cascade_search` derives them. The flat scan counts as settled the
        entries that reach the k-th score (:func:`hiernorm.reference.flat_work`): it computes a few
        more canonical scores, where rounding leaves a doubt. An index with codes scans some groups
        of queries flat too (:func:`hiernorm.reference.scans_flat`).
    kth_score : (m,) float64
        Score of the k-th hit (the threshold, for a range); -inf if there are fewer than k entries.
    skipped_bound : (m,) float64
        No entry without a canonical score scores higher; -inf if there is none.
    exact : (m,) bool
        The answer is that of exhaustive search: nothing skipped reaches the k-th score.
    gap : (m,) float64
        The true k-th score is at most this much above the returned one; 0 where exact.
    checked : str
        What of the files was compared with checksums: ``"touched"`` (every block that the search
        read), ``"settled"`` (the blocks of rows and ids that it read), ``"all"`` (every block, when
        the database was opened) or ``"none"``. The rest was taken for what was written. Empty for
        an index in memory.

    Notes
    -----
    A pickled certificate takes neither the index nor its entries along: its :attr:`digest` is empty
    unless it was asked for before.
    """

    __slots__ = (
        "_digest",
        "checked",
        "entries",
        "exact",
        "gap",
        "kth_score",
        "skipped_bound",
        "work",
    )

    def __init__(
        self,
        entries: int,
        work: Int64Array,
        kth_score: Float64Array,
        skipped_bound: Float64Array,
        digest: Callable[[], str],
        *,
        checked: str = "",
    ) -> None:
        self.entries = entries
        self.checked = checked
        self.work = {step: work[:, i] for i, step in enumerate(STEPS)}
        self.kth_score = kth_score
        self.skipped_bound = skipped_bound
        self.exact: BoolArray = (skipped_bound < kth_score) | np.isneginf(skipped_bound)
        with np.errstate(invalid="ignore"):
            self.gap: Float64Array = np.where(self.exact, 0.0, skipped_bound - kth_score)
        self._digest: Callable[[], str] | str = digest

    @property
    def phase2_share(self) -> Float64Array:
        """Share of the entries that the major scan could not rule out, per query."""
        share: Float64Array = self.work["sifted"] / max(self.entries, 1)
        return share

    @property
    def digest(self) -> str:
        """SHA-256 of parameters and entries, computed when first asked for; see :func:`digest`.

        Empty if it is first asked for when the entries are gone: some were deleted since the
        search, or the certificate was pickled.
        """
        if not isinstance(self._digest, str):
            self._digest = self._digest()
        return self._digest

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        names = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        state = {name: getattr(self, name) for name in names}
        state["_digest"] = self._digest if isinstance(self._digest, str) else ""
        return None, state

    def __len__(self) -> int:
        return len(self.kth_score)

    def __getitem__(self, query: int) -> QueryCertificate:
        return QueryCertificate(
            entries=self.entries,
            **{step: int(self.work[step][query]) for step in STEPS},
            kth_score=float(self.kth_score[query]),
            skipped_bound=float(self.skipped_bound[query]),
            exact=bool(self.exact[query]),
            gap=float(self.gap[query]),
            digest=self.digest,
            checked=self.checked,
        )

    def __iter__(self) -> Iterator[QueryCertificate]:
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"Certificate(queries={len(self)}, entries={self.entries}, "
            f"exact={int(self.exact.sum())}, mean_phase2_share={_mean(self.phase2_share):.3%})"
        )


def _mean(values: Float64Array) -> float:
    return float(values.mean()) if len(values) else 0.0


def digest(parameters: str, ids: Int64Array, rows: Float32Array) -> str:
    """SHA-256 over the parameters, then every entry in the order of its id.

    An entry is its id (int64) and its row (float32), little-endian. The order of insertion and
    the layout in memory leave no trace.

    Examples
    --------
    >>> import numpy as np
    >>> ids, rows = np.array([1, 2]), np.float32([[1, 2], [3, 4]])
    >>> digest("ip", ids, rows) == digest("ip", ids[::-1], rows[::-1])
    True
    """
    order = np.argsort(ids, kind="stable")
    parts = (order[first : first + 4096] for first in range(0, len(ids), 4096))
    return digest_in_order(parameters, rows.shape[1], ((ids[p], rows[p]) for p in parts))


def digest_in_order(
    parameters: str, dim: int, entries: Iterable[tuple[Int64Array, Float32Array]]
) -> str:
    """The same for entries that come piece by piece, in ascending order of id.

    Examples
    --------
    >>> import numpy as np
    >>> ids, rows = np.array([1, 2]), np.float32([[1, 2], [3, 4]])
    >>> pieces = [(ids[:1], rows[:1]), (ids[1:], rows[1:])]
    >>> digest_in_order("ip", 2, pieces) == digest("ip", ids, rows)
    True
    """
    sha = hashlib.sha256(parameters.encode())
    entry = np.dtype([("id", "<i8"), ("row", "<f4", (dim,))])
    for ids, rows in entries:
        packed = np.empty(len(ids), entry)
        packed["id"] = ids
        packed["row"] = rows
        sha.update(packed.tobytes())
    return sha.hexdigest()

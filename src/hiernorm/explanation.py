"""What an index does with its vectors, and what to expect of it: measured, not guessed.

Entries of the index serve as queries. Each finds itself first, so a search for one hit more does
the work of a search by a vector that is not in the index. Brute force is the flat scan of the same
rows, on as many of them as fit a short measurement; its time grows with their number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array, Float64Array, Int64Array
from hiernorm.certificate import STEPS, read_stats
from hiernorm.fitting import rotation_of
from hiernorm.rotation import fit_rotation
from hiernorm.settings import EXACT, IndexSettings
from hiernorm.threads import one_blas_thread

QUERIES = 128
"""Queries of a batch; single queries are the first of them."""
SINGLE = 32
REPEATS = 3
"""The least time counts."""
SAMPLE_ROWS = 4096
"""Rows whose energy is measured."""
FLAT_VALUES = 1 << 22
"""Numbers of the rows on which brute force is timed: 65,536 rows of 64 dimensions."""
FINE_CLOCK = 1e-5
"""Seconds between two ticks of a clock that is fine enough."""
GAIN = 1.1
"""A factor that is worth speaking of."""


@dataclass(frozen=True)
class Explanation:
    """How an index searches its vectors, and how fast, on this machine and with one thread.

    Attributes
    ----------
    entries, dim, metric
        Of the index.
    engine
        What searches: ``"cascade"``, ``"flat"``, ``"paper"`` or ``"exhaustive"``.
    major
        K, the number of leading dimensions that the scan reads; None without codes.
    energy : (d,) float64
        The share of the squared norm in the first 1, 2, ... d dimensions, in the order in which
        they are read.
    share_scanned
        The share of the entries whose codes a query reads; cells save the others.
    share_refined
        The share of the entries that their codes do not rule out: the paper's Phase 2.
    share_settled
        The share of the entries whose rows are read for a canonical score.
    k, queries
        Hits per query, and number of queries, of the measurement.
    single_us, batch_us
        Time of a query, alone and in a batch, in microseconds.
    flat_single_us, flat_batch_us
        The same for brute force.
    """

    entries: int
    dim: int
    metric: str
    engine: str
    major: int | None
    energy: Float64Array = field(repr=False)
    share_scanned: float
    share_refined: float
    share_settled: float
    k: int
    queries: int
    single_us: float
    batch_us: float
    flat_single_us: float
    flat_batch_us: float

    @property
    def single_factor(self) -> float:
        """How many times as fast as brute force the index is for single queries."""
        return self.flat_single_us / self.single_us

    @property
    def batch_factor(self) -> float:
        """How many times as fast as brute force the index is for batches."""
        return self.flat_batch_us / self.batch_us

    def dims_for(self, share: float) -> int:
        """The number of leading dimensions that hold this share of the energy."""
        return min(self.dim, int(np.searchsorted(self.energy, share)) + 1)

    @property
    def verdict(self) -> str:
        """What to do, in a sentence or two."""
        single, batch = self.single_factor, self.batch_factor
        if self.engine == "flat":
            return (
                "Codes do not pay for these vectors. The index reads every row, as brute force "
                "does, and its answers are exact."
            )
        if min(single, batch) >= GAIN:
            return (
                f"The index is {single:.1f} times as fast as brute force for single queries, "
                f"{batch:.1f} times for batches."
            )
        if max(single, batch) < GAIN:
            return "Brute force is as fast, or faster: use engine='flat'."
        kinds = ["single queries", "batches"]
        slower, faster = kinds if single < batch else reversed(kinds)
        return (
            f"The index is {max(single, batch):.1f} times as fast as brute force for {faster}. "
            f"Brute force wins for {slower}: use engine='flat' if that is what you have."
        )

    def facts(self) -> dict[str, Any]:
        """All attributes as plain numbers and texts, for JSON."""
        names = [name for name in self.__dataclass_fields__ if name != "energy"]
        return {
            **{name: getattr(self, name) for name in names},
            "single_factor": self.single_factor,
            "batch_factor": self.batch_factor,
            "energy": [round(float(share), 6) for share in self.energy],
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        halves = ", ".join(f"{share:.0%} in {self.dims_for(share)}" for share in (0.5, 0.9, 0.99))
        searches = f"engine {self.engine}"
        if self.major is not None:
            searches += f", which scans the first {self.major} dimensions"
            searches += f" ({self.energy[self.major - 1]:.1%} of the energy)"
        rows = [
            ("vectors", f"{self.entries:,} of {self.dim} dimensions, metric {self.metric}"),
            ("energy", f"{halves} of {self.dim} dimensions"),
            ("search", searches),
            (
                "a query reads",
                f"codes of {self.share_scanned:.1%} of the entries, more of "
                f"{self.share_refined:.2%}, rows of {self.share_settled:.2%}",
            ),
            ("single query", _times(self.single_us, self.flat_single_us)),
            ("in a batch", _times(self.batch_us, self.flat_batch_us)),
            ("measured with", f"{self.queries} queries, k={self.k}, one thread"),
        ]
        if self.major is None:
            del rows[3]
        lines = [f"{name:<14} {text}" for name, text in rows]
        return "\n".join([*lines, self.verdict])


def _times(own: float, flat: float) -> str:
    return f"{own:,.0f} us; brute force {flat:,.0f} us: {flat / own:.1f} times as fast"


def explain_index(
    settings: IndexSettings, core: _core.Index, queries: Float32Array | None, k: int
) -> Explanation:
    """Measure a native index that is not empty; see :meth:`hiernorm.Index.explain`."""
    ids, entries, d = core.ids(), len(core), settings.dim
    sample = core.reconstruct(_spread(ids, SAMPLE_ROWS))
    hits = k
    if queries is None:
        queries, hits = core.reconstruct(_spread(ids, QUERIES)), k + 1
    flat = settings.make_core("flat")
    few = _spread(ids, max(1024, FLAT_VALUES // d))
    flat.add(core.reconstruct(few), np.arange(len(few)))
    encoding = core.encoding()
    is_flat = settings.engine == "flat" or (settings.needs_fit and encoding is None)
    single, batch = _time(core, queries, hits)
    scale = entries / len(few)
    flat_single, flat_batch = (single, batch) if is_flat else _time(flat, queries, hits)
    if not is_flat:
        flat_single, flat_batch = scale * flat_single, scale * flat_batch
    # One by one where the plan scans large groups flat: shares are those that codes leave.
    _, _, stats, _, _ = core.search(queries, hits, EXACT, 1, 1 if core.flat_plan else 0)
    work, _ = read_stats(stats)
    shares = dict(zip(STEPS, (work.mean(axis=0) / entries).tolist(), strict=True))
    return Explanation(
        entries,
        d,
        settings.metric,
        "flat" if is_flat else settings.engine,
        None if encoding is None else encoding.major,
        _energy(settings, encoding, sample),
        shares["scanned"],
        shares["sifted"],
        shares["settled"],
        k,
        len(queries),
        single,
        batch,
        flat_single,
        flat_batch,
    )


def _spread(ids: Int64Array, most: int) -> Int64Array:
    return ids[np.linspace(0, len(ids) - 1, min(most, len(ids))).astype(np.int64)]


def _energy(
    settings: IndexSettings, encoding: _core.Encoding | None, sample: Float32Array
) -> Float64Array:
    rotation = None if encoding is None else rotation_of(encoding)
    with one_blas_thread():
        if rotation is None and settings.rotates:
            rotation = fit_rotation(sample)
        view = sample.astype(np.float64) if rotation is None else rotation.apply(sample)
    energy = np.cumsum(np.square(view).sum(axis=0))
    shares: Float64Array = energy / (energy[-1] or 1.0)
    return shares


def _time(core: _core.Index, queries: Float32Array, k: int) -> tuple[float, float]:
    """The least time of a query in microseconds: alone, and in a batch of all."""
    few = [np.ascontiguousarray(query[np.newaxis]) for query in queries[:SINGLE]]

    def search_each() -> None:
        for query in few:
            core.search(query, k, EXACT, 1, 0)

    def search_all() -> None:
        core.search(queries, k, EXACT, 1, 0)

    return _least(search_each) / len(few), _least(search_all) / len(queries)


def _least(run: Callable[[], None]) -> float:
    # A search with one thread runs in this one: its processor time does not depend on what else
    # the machine does. Some systems count it in steps that are too large.
    fine = time.get_clock_info("thread_time").resolution < FINE_CLOCK
    clock = time.thread_time if fine else time.perf_counter
    times = []
    for _ in range(REPEATS):
        start = clock()
        run()
        times.append(clock() - start)
    return 1e6 * min(times)

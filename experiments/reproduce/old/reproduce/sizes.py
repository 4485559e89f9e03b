"""How much a reproduction measures: the paper's numbers, or a smoke size that takes minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hiernorm.bench.cases import Scale


@dataclass(frozen=True)
class Size:
    """The numbers of a reproduction.

    Attributes
    ----------
    name
        For the report.
    entries
        Of the databases of Tables 2 and 3.
    graph_entries
        Of the databases of Table 4; the last is past the paper.
    section_entries
        Of the databases of Section 3 and of the future work.
    rebuild_entries
        Of the database whose graphs are built again and again to see whether they agree.
    queries, runs
        Of every timing: as in the paper, 200 queries and 10 runs.
    more_queries
        At most so many where nothing is timed.
    seconds, slow_seconds
        Of one method in one run, and in all runs: a slow method searches fewer queries per run,
        and from run to run the queries move on.
    rounds
        Of the bootstrap of FPR@95.
    epochs
        Of training; None means the paper's.
    batches
        Pairs per batch of the future work's training with hardest negatives.
    head_epochs, head_views
        Of that training where the recipe changes the last layer alone.
    """

    name: str
    entries: int = 500_000
    graph_entries: tuple[int, ...] = (1_000, 5_000, 99_000, 500_000)
    section_entries: int = 99_000
    rebuild_entries: int = 20_000
    queries: int = 200
    runs: int = 10
    more_queries: int = 1_000
    seconds: float = 1.0
    slow_seconds: float = 20.0
    rounds: int = 1_000
    epochs: int | None = None
    batches: tuple[int, ...] = (32, 256)
    head_epochs: int = 2
    head_views: int = 2

    def within(self, seconds: float) -> Size:
        """The same with another time for one method in one run.

        Examples
        --------
        >>> FULL.within(0.5).slow_seconds
        10.0
        """
        return replace(self, seconds=seconds, slow_seconds=SLOW * seconds)

    @property
    def scale(self) -> Scale:
        """The same for the benchmark, which does the timing."""
        return Scale(
            sizes=self.graph_entries,
            points=(),
            plain_size=self.entries,
            queries=self.queries,
            rounds=self.runs,
            seconds=self.seconds,
            slow_seconds=self.slow_seconds,
        )


SLOW = 20
"""A method may take so many times the seconds of one run in all runs together."""

FULL = Size("full")
SMOKE = Size(
    "smoke",
    entries=3_000,
    graph_entries=(500, 1_500),
    section_entries=1_500,
    rebuild_entries=500,
    queries=40,
    runs=2,
    more_queries=60,
    seconds=0.005,
    slow_seconds=0.05,
    rounds=50,
    epochs=1,
    batches=(8, 32),
    head_epochs=1,
    head_views=1,
)

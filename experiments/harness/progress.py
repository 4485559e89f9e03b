"""How far a run is: a bar with the time left on stderr, or lines where there is no terminal."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PIPED_WIDTH = 110

PRIOR = 120.0
"""Seconds for which the expected pace counts before that of the runs does."""


class Bar:
    """A bar with the time left."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = TaskID(0)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, total: float) -> None:
        """Show an empty bar."""
        self._task = self._bar.add_task("", total=total)

    def say(self, doing: str) -> None:
        """Show what is being done."""
        self._bar.update(self._task, description=doing)

    def advance(self, share: float) -> None:
        """Fill the bar a little more."""
        self._bar.advance(self._task, share)


class PlanBars:
    """Bars for a plan of runs whose times are expected: the whole and the part, with time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> PlanBars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def start(self, expected: dict[str, float]) -> None:
        """Show empty bars; `expected` are the seconds of each part."""
        self._expected = expected
        self._left = dict(expected)
        self._planned = self._taken = 0.0
        self._whole = self._bars.add_task("all", total=sum(expected.values()), left="")
        self._part = self._bars.add_task("", total=1, left="")
        self._doing = self._bars.add_task("", total=None, left="")

    def say(self, doing: str) -> None:
        """Show what is being done."""
        self._bars.update(self._doing, description=doing)

    def done(self, part: str, run: str, expected: float, seconds: float | None) -> None:
        """Note a run that is done; `seconds` is None if it was finished before.

        The time left is what was planned, at the pace that was seen so far.
        """
        self._left[part] -= expected
        if seconds is not None:
            self._planned += expected
            self._taken += seconds
        # The first few runs say little about the pace: begin with what was planned.
        pace = (self._taken + PRIOR) / (self._planned + PRIOR)
        whole, own = sum(self._left.values()), self._left[part]
        self._bars.update(self._whole, advance=expected, left=f"{span(pace * whole)} left")
        self._bars.update(
            self._part,
            description=part,
            total=self._expected[part],
            completed=self._expected[part] - own,
            left=f"{span(pace * own)} left",
        )
        if not self._console.is_terminal and seconds is not None:
            self._console.print(
                f"{time.strftime('%H:%M:%S')}  {part}: {run} done in {span(seconds)}; "
                f"part {span(pace * own)}, all {span(pace * whole)} left",
                highlight=False,
            )


def span(seconds: float) -> str:
    """A span of time in words.

    Examples
    --------
    >>> span(42), span(720), span(12240)
    ('42 s', '12 min', '3.4 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

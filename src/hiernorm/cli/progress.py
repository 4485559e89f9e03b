"""Progress bars on stderr; nothing is shown if that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from hiernorm.progress import ProgressCallback


def make_progress(*columns: ProgressColumn) -> Progress:
    """A display of bars: description, bar, the given columns, time left."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def working(step: str) -> Iterator[Callable[[str], None]]:
    """Show the step that runs, where its length is unknown; yields a function that changes it."""
    with Console(stderr=True).status(step) as status:
        yield lambda text: status.update(text)


@contextmanager
def progress_bar(description: str, unit: str = "entries") -> Iterator[ProgressCallback]:
    """Show one bar; yields a function that takes the number done and the total, or None."""
    with make_progress(TextColumn(f"{{task.completed:,}} {unit}")) as bars:
        task = bars.add_task(description, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)

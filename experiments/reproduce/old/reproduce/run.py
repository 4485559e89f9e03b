"""The reproduction from end to end: every run that is not finished, then the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from hiernorm.extras import import_extra
from hiernorm.learn.checkpoint import write_atomically
from hiernorm.reproduce.options import Options
from hiernorm.reproduce.plan import PARTS
from hiernorm.reproduce.work import Part, Run, Work

SETTINGS = "settings.json"
"""Beside the report: what its runs were made with."""


class Progress(Protocol):
    """Hears how far the reproduction is."""

    def start(self, plan: list[tuple[Part, list[Run]]]) -> None:
        """Begin."""

    def say(self, doing: str) -> None:
        """Name what is being done now."""

    def done(self, part: Part, run: Run, seconds: float | None) -> None:
        """Note a run that is done, and the seconds it took; None if it was finished before."""


def run_parts(options: Options, progress: Progress, only: tuple[str, ...] = ()) -> None:
    """Run all that is not finished; each result is on disk as soon as it is there.

    Parameters
    ----------
    options
        What to reproduce, and where to.
    progress
        Hears of every run.
    only
        Names of the parts to run; all if there are none.
    """
    if unknown := set(only) - {part.name for part in PARTS}:
        names = ", ".join(part.name for part in PARTS)
        raise ValueError(f"no part {unknown.pop()!r}: there are {names}")
    # Threads of its own would disturb what is timed beside it.
    import_extra("cv2", extra="vision").setNumThreads(options.threads)
    work = Work(options, progress.say)
    plan = [(part, runs) for part, runs in plan_parts(work) if not only or part.name in only]
    write_atomically(
        options.out / SETTINGS, (json.dumps(options.settings(), indent=1) + "\n").encode()
    )
    progress.start(plan)
    for part, runs in plan:
        for run in runs:
            name = f"{part.name}/{run.name}"
            if work.store.find(name) is not None:
                progress.done(part, run, None)
                continue
            progress.say(f"{part.name}: {run.name}")
            work.store.make(name, run.make)
            record = work.store.read(name)
            progress.done(part, run, None if record is None else record["seconds"])


def plan_parts(work: Work) -> list[tuple[Part, list[Run]]]:
    """All parts with their runs."""
    return [(part, part.plan(work)) for part in PARTS]


def read_settings(out: Path) -> dict[str, Any]:
    """The settings of an earlier reproduction, to render its report again."""
    file = out / SETTINGS
    if not file.is_file():
        raise FileNotFoundError(f"no reproduction in {out}: it has no {SETTINGS}")
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return settings

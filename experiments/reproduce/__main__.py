"""`hiernorm reproduce`: run the paper's experiments and write a report beside its figures."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from hiernorm.extras import import_extra

if TYPE_CHECKING:
    from hiernorm.reproduce.options import Options
    from hiernorm.reproduce.work import Part, Run

FOLDER = click.Path(file_okay=False, path_type=Path)
PIPED_WIDTH = 110

PRIOR = 120.0
"""Seconds for which the expected pace counts before that of the runs does."""


@click.command()
@click.option("--data", type=FOLDER, help="Folder of scenes (folders or zips) and photos/<scene>/.")
@click.option("--train", metavar="SCENE", help="To train on.")
@click.option("--test", "tests", nargs=2, metavar="SCENE SCENE", help="To test on.")
@click.option("--out", type=FOLDER, default=Path("report"), show_default=True, help="Folder.")
@click.option(
    "--recipe",
    type=click.Choice(["paper", "turned"]),
    help="How HN variants are made: fine-tuned as in the paper (hours), or the baseline's last "
    "layer turned (seconds)  [paper; with --smoke: turned]",
)
@click.option(
    "--baseline",
    default="hardnet",
    show_default=True,
    help="Plain weights: the package's, a file, 'liberty' or 'hardnet++'.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds of one method in one of the ten runs: what is slower than 200 queries in that "
    "time searches fewer per run, and others in the next  [1]",
)
@click.option("--smoke", is_flag=True, help="All of it in minutes, on embedded photographs.")
@click.option("--list", "only_list", is_flag=True, help="Show the parts and their time, no more.")
@click.option("--only", multiple=True, metavar="PART", help="Of --list; may be repeated.")
@click.option("--force", is_flag=True, help="Repeat runs that are finished.")
@click.option("--render", "only_render", is_flag=True, help="Write the report in --out again.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option("--json", "as_json", is_flag=True, help="Print the list, or where it went, as JSON.")
def reproduce(
    data: Path | None,
    train: str | None,
    tests: tuple[str, str] | None,
    out: Path,
    recipe: str | None,
    baseline: str,
    budget: float | None,
    smoke: bool,
    only_list: bool,
    only: tuple[str, ...],
    force: bool,
    only_render: bool,
    threads: int,
    seed: int,
    as_json: bool,
) -> None:
    """Reproduce the paper's tables, figures and claims.

    Trains what must be trained, runs what must be run and writes index.html and REPORT.md into
    --out: the paper's figure, ours and their ratio for every cell. Every finished run is one JSON
    file there; what is finished is not repeated, so an interrupted reproduction goes on where it
    was. Searches are timed with one thread; --threads is for networks and training.

    The paper's own setting, once `hiernorm data download` has fetched the official scenes:
    --train notredame_2007 --test trevi halfdome --baseline liberty
    """
    run = import_extra("hiernorm.reproduce.run", extra="reproduce")
    render = import_extra("hiernorm.reproduce.render", extra="reproduce")
    if not only_render:
        scenes = _find_scenes(data, train, tests, out, smoke, only_list)
        options = _options(scenes, out, recipe, baseline, budget, smoke, force, threads, seed)
        if only_list:
            parts = _list_parts(options)
            if as_json:
                click.echo(json.dumps({"parts": parts}))
            else:
                _show_list(parts)
            return
        with _Bars() as bars:
            run.run_parts(options, bars, only)
    page = render.render_report(out)
    click.echo(json.dumps({"report": str(page)}) if as_json else f"report: {page}")


def _find_scenes(
    data: Path | None,
    train: str | None,
    tests: tuple[str, str] | None,
    out: Path,
    smoke: bool,
    only_list: bool,
) -> tuple[Path, str, tuple[str, str]]:
    """The folder of scenes, the one to train on and those to test on; made for a smoke run.

    A list needs no more than names, any if none are given.
    """
    if smoke:
        if data or train or tests:
            raise click.UsageError("--smoke brings its own scenes: give no --data, --train, --test")
        from hiernorm.reproduce.smoke import SCENES, make_scenes

        folder = out / "cache" / "scenes"
        if not only_list:
            make_scenes(folder)
        return folder, SCENES[0], (SCENES[1], SCENES[2])
    if only_list and data is None:
        return Path(), train or "TRAIN", tests or ("TEST1", "TEST2")
    if data is None or train is None or not tests:
        raise click.UsageError("give --data, --train and --test, or --smoke")
    return data, train, tests


def _options(
    scenes: tuple[Path, str, tuple[str, str]],
    out: Path,
    recipe: str | None,
    baseline: str,
    budget: float | None,
    smoke: bool,
    force: bool,
    threads: int,
    seed: int,
) -> Options:
    """Put the options together."""
    from hiernorm.reproduce.options import Options
    from hiernorm.reproduce.sizes import FULL, SMOKE

    data, train, tests = scenes
    size = SMOKE if smoke else FULL
    return Options(
        data=data,
        train=train,
        tests=tests,
        out=out,
        recipe=recipe or ("turned" if smoke else "paper"),
        baseline=baseline,
        size=size if budget is None else size.within(budget),
        seed=seed,
        threads=threads,
        force=force,
    )


def _list_parts(options: Options) -> list[dict[str, Any]]:
    """What would run: nothing is computed for it."""
    from hiernorm.reproduce.run import plan_parts
    from hiernorm.reproduce.work import Work

    work = Work(options)
    parts = []
    for part, runs in plan_parts(work):
        finished = [run for run in runs if work.store.find(f"{part.name}/{run.name}") is not None]
        parts.append(
            {
                "part": part.name,
                "what": part.title,
                "runs": len(runs),
                "finished": len(finished),
                "expected_seconds": sum(run.seconds for run in runs),
            }
        )
    return parts


def _show_list(parts: list[dict[str, Any]]) -> None:
    table = Table()
    for column in ("part", "what", "runs", "finished", "expected"):
        table.add_column(column, justify="left" if column in ("part", "what") else "right")
    for part in parts:
        *cells, seconds = part.values()
        table.add_row(*map(str, cells), _span(seconds))
    total = sum(part["expected_seconds"] for part in parts)
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    console = Console(width=width)
    console.print(table)
    console.print(
        f"{_span(total)} in all at full size with --recipe turned, on two quiet cores. "
        "--recipe paper trains ten networks first and describes every database with each: hours.",
        highlight=False,
    )


class _Bars:
    """A bar for the whole with the time left, and one for the part; lines where no terminal is."""

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

    def __enter__(self) -> _Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def start(self, plan: list[tuple[Part, list[Run]]]) -> None:
        """Show empty bars."""
        self._expected = {part.name: sum(run.seconds for run in runs) for part, runs in plan}
        self._left = dict(self._expected)
        self._planned = self._taken = 0.0
        self._whole = self._bars.add_task("all", total=sum(self._left.values()), left="")
        self._part = self._bars.add_task("", total=1, left="")
        self._doing = self._bars.add_task("", total=None, left="")

    def say(self, doing: str) -> None:
        """Show what is being done."""
        self._bars.update(self._doing, description=doing)

    def done(self, part: Part, run: Run, seconds: float | None) -> None:
        """Fill the bars; the time left is what was planned, at the pace that was seen so far."""
        self._left[part.name] -= run.seconds
        if seconds is not None:
            self._planned += run.seconds
            self._taken += seconds
        # The first few runs say little about the pace: begin with what was planned.
        pace = (self._taken + PRIOR) / (self._planned + PRIOR)
        whole, own = sum(self._left.values()), self._left[part.name]
        self._bars.update(self._whole, advance=run.seconds, left=f"{_span(pace * whole)} left")
        self._bars.update(
            self._part,
            description=part.name,
            total=self._expected[part.name],
            completed=self._expected[part.name] - own,
            left=f"{_span(pace * own)} left",
        )
        if not self._console.is_terminal and seconds is not None:
            self._console.print(
                f"{time.strftime('%H:%M:%S')}  {part.name}: {run.name} done in {_span(seconds)}; "
                f"part {_span(pace * own)}, all {_span(pace * whole)} left",
                highlight=False,
            )


def _span(seconds: float) -> str:
    """A span of time in words: 42 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

"""`make reproduce`: run the paper's experiments and write a report beside its figures."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from experiments.harness.command import FOLDER, Experiment
from experiments.harness.progress import PIPED_WIDTH, PlanBars, span
from experiments.reproduce.options import (
    FULL,
    RECIPES,
    SMOKE,
    SMOKE_SCENES,
    Options,
    make_scenes,
)
from experiments.reproduce.report import plan_parts, render_report, run_parts
from experiments.reproduce.work import Work


@click.command("reproduce", cls=Experiment)
@click.option("--data", type=FOLDER, help="Folder of scenes (folders or zips) and photos/<scene>/.")
@click.option(
    "--train-data", type=FOLDER, help="Folder of the scenes to train on, if it is not --data."
)
@click.option(
    "--train",
    "trains",
    multiple=True,
    metavar="SCENE",
    help="Scene to train on; with --recipe tuned it may be repeated.",
)
@click.option("--test", "tests", nargs=2, metavar="SCENE SCENE", help="To test on.")
@click.option("--out", type=FOLDER, default=Path("report"), show_default=True, help="Folder.")
@click.option(
    "--recipe",
    type=click.Choice(RECIPES),
    help="How HN variants are made: fine-tuned as in the paper (hours), the baseline's last "
    "layer turned (seconds), or turned and then fine-tuned with the baseline as teacher (minutes "
    "each)  [paper; with --smoke: turned]",
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
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Epochs of each variant over each view with --recipe tuned  [4]",
)
@click.option("--smoke", is_flag=True, help="All of it in minutes, on embedded photographs.")
@click.option("--list", "only_list", is_flag=True, help="Show the parts and their time, no more.")
@click.option("--only", multiple=True, metavar="PART", help="Of --list; may be repeated.")
@click.option("--force", is_flag=True, help="Repeat runs that are finished.")
@click.option("--render", "only_render", is_flag=True, help="Write the report in --out again.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option("--json", "as_json", is_flag=True, help="Print the list, or where it went, as JSON.")
def main(
    data: Path | None,
    train_data: Path | None,
    trains: tuple[str, ...],
    tests: tuple[str, str] | None,
    out: Path,
    recipe: str | None,
    baseline: str,
    budget: float | None,
    epochs: int | None,
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
    if not only_render:
        train = trains[0] if trains else None
        scenes = _find_scenes(data, train, tests, out, smoke, only_list)
        options = _options(scenes, out, recipe, baseline, budget, smoke, force, threads, seed)
        size = options.size if epochs is None else replace(options.size, tuned_epochs=epochs)
        options = replace(options, more_train=trains[1:], size=size, train_data=train_data)
        if only_list:
            parts = _list_parts(options)
            if as_json:
                click.echo(json.dumps({"parts": parts}))
            else:
                _show_list(parts)
            return
        with PlanBars() as bars:
            run_parts(options, bars, only)
    page = render_report(out)
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
        folder = out / "cache" / "scenes"
        if not only_list:
            make_scenes(folder)
        train, first, second = SMOKE_SCENES
        return folder, train, (first, second)
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
        table.add_row(*map(str, cells), span(seconds))
    total = sum(part["expected_seconds"] for part in parts)
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    console = Console(width=width)
    console.print(table)
    console.print(
        f"{span(total)} in all at full size with --recipe turned, on two quiet cores. "
        "--recipe paper trains ten networks first and describes every database with each: hours.",
        highlight=False,
    )


if __name__ == "__main__":
    main()

"""`make record`: every figure of the pages, measured again on one commit."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from experiments.harness.command import EXISTING_FOLDER, FOLDER, SMOKE_FOLDER, Experiment
from experiments.record.plan import Folders, choose
from experiments.record.run import Options, Record

OUT = Path("build") / "record"


@click.command("record", cls=Experiment)
@click.option(
    "--data", type=EXISTING_FOLDER, help="Has scenes (<scene>.zip), photos/ and weights/."
)
@click.option("--work", type=FOLDER, help="Keeps features, embeddings, graphs  [work in --out]")
@click.option("--only", multiple=True, metavar="STEP", help="Of --list; may be repeated.")
@click.option("--skip", multiple=True, metavar="STEP", help="Of --list; may be repeated.")
@click.option("--prepare", is_flag=True, help="Only what timings need: the machine may be busy.")
@click.option("--budget", type=click.FloatRange(min=0), help="Minutes for all.")
@click.option("--patience", default=30.0, show_default=True, help="Minutes to wait for quiet.")
@click.option("--list", "only_list", is_flag=True, help="Show the steps and their time, no more.")
@click.option("--install", is_flag=True, help="Install what is done and render, no more.")
@click.option("--smoke", is_flag=True, help="Everything small, from any tree; nothing installed.")
@click.option("--out", type=FOLDER, help="Folder  [build/record; with --smoke: build/smoke/record]")
def main(
    data: Path | None,
    work: Path | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    prepare: bool,
    budget: float | None,
    patience: float,
    only_list: bool,
    install: bool,
    smoke: bool,
    out: Path | None,
) -> None:
    """Run every experiment whose result a page shows, in turn.

    A step that is done at the same code is not repeated, so an interrupted record goes on where it
    was. A timing begins when other processes use at most 5% of the machine; one that was disturbed
    counts as not done. No step begins in a tree with changes. Results are put into the project at
    the end, and all tables and pictures are rendered.
    """
    try:
        steps = [step for step in choose(only) if step.name not in skip]
        steps = [step for step in steps if step.prepares or not prepare]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    out = (out or (SMOKE_FOLDER / "record" if smoke else OUT)).absolute()
    root = None if data is None else data.absolute()
    folders = Folders(out, (work or out / "work").absolute(), root)
    out.mkdir(parents=True, exist_ok=True)
    record = Record(steps, folders, Options(budget, patience, smoke), click.echo)
    record.show()
    if only_list:
        return
    succeeded = install or record.run()
    if not smoke and not prepare:
        record.install()
    sys.exit(0 if succeeded else 1)


if __name__ == "__main__":
    main()

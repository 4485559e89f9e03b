"""The command line of an experiment: shared options, where results go, what was typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
"""The folder `experiments`."""

SMOKE_FOLDER = Path("build") / "smoke"

FOLDER = click.Path(file_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)

out_option = click.option(
    "--out",
    type=FOLDER,
    help="Folder for the results  [the experiment's own; with --smoke: build/smoke]",
)
smoke_option = click.option("--smoke", is_flag=True, help="As little as possible: to see it work.")
seed_option = click.option(
    "--seed", default=0, show_default=True, help="Seed of all that is drawn."
)

graphs_option = click.option(
    "--graphs", type=FOLDER, help="Keeps hnswlib's graphs for the next run."
)
only_graphs_option = click.option(
    "--only-graphs",
    is_flag=True,
    help="Build the graphs and keep them in --graphs, time nothing: the machine may be busy.",
)

_ARGUMENTS = "experiments.arguments"


class Experiment(click.Command):
    """A command that remembers what was typed, for the record."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Keep the arguments before they are parsed."""
        given = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[_ARGUMENTS] = (context.command.name, given)
        return context


def results_folder(experiment: str, out: Path | None = None, smoke: bool = False) -> Path:
    """Where the results of an experiment go; those of a smoke run never replace real ones.

    Examples
    --------
    >>> results_folder("speed", smoke=True).as_posix()
    'build/smoke/speed'
    """
    if out is not None:
        return out
    return SMOKE_FOLDER / experiment if smoke else ROOT / experiment / "results"


def current_command() -> str | None:
    """What was typed, with the folders of this machine left out of absolute paths."""
    context = click.get_current_context(silent=True)
    if context is None or _ARGUMENTS not in context.meta:
        return None
    name, arguments = context.meta[_ARGUMENTS]
    return shlex.join(["python", "-m", f"experiments.{name}", *map(_shorten, arguments)])


def _shorten(argument: str) -> str:
    """Keep the last part of every absolute path.

    Examples
    --------
    >>> _shorten("/home/me/x.npy"), _shorten("set=/home/me/x.npy,/tmp/q.npy"), _shorten("K8-a1/32")
    ('x.npy', 'set=x.npy,q.npy', 'K8-a1/32')
    """
    return re.sub(r"(?<![^=,])/(?:[^/,=]+/)*", "", argument)

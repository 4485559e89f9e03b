"""The `hiernorm` command group: errors in one line, and its commands."""

from __future__ import annotations

from typing import Any

import click

import hiernorm
from hiernorm.cli import database
from hiernorm.cli.cluster import cluster
from hiernorm.cli.colmap import colmap
from hiernorm.cli.completion import completion
from hiernorm.cli.data import data
from hiernorm.cli.demo import demo
from hiernorm.cli.describe import describe
from hiernorm.cli.evaluate import evaluate
from hiernorm.cli.explore import explore
from hiernorm.cli.info import info
from hiernorm.cli.locate import locate_command
from hiernorm.cli.match import match
from hiernorm.cli.reconstruct import reconstruct
from hiernorm.cli.train import train
from hiernorm.storage.errors import (
    DamagedError,
    FormatVersionError,
    LockedError,
    NotADatabaseError,
)


class _Damaged(click.ClickException):
    exit_code = 3


class _Locked(click.ClickException):
    exit_code = 4


class _NoDatabase(click.ClickException):
    exit_code = 5


EXIT_KINDS: dict[type[Exception], type[click.ClickException]] = {
    DamagedError: _Damaged,
    LockedError: _Locked,
    NotADatabaseError: _NoDatabase,
    FormatVersionError: _NoDatabase,
}
"""Exit codes for scripts; any other error is 1, a wrong command line 2."""


def one_line(error: Exception) -> click.ClickException:
    """The error in one line, with the exit code of its kind."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    if isinstance(error, OSError) and error.filename is None and error.strerror is not None:
        text = error.strerror
    reason = " ".join(str(text).split()) or type(error).__name__
    return EXIT_KINDS.get(type(error), click.ClickException)(reason)


class OneLineErrors(click.Group):
    """A group that turns any error into one line, unless --debug asks for the traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise one_line(error) from error


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(hiernorm.__version__, prog_name="hiernorm")
def app(debug: bool) -> None:
    """Exact and deterministic vector retrieval by Hierarchical Normalization.

    \b
    A database in three commands:
      hiernorm build patches.hn descriptors.npy
      hiernorm search patches.hn queries.npy -k 5
      hiernorm info patches.hn

    Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 an error, 2 a wrong
    command line, 3 a damaged database, 4 another process is writing to it, 5 no database there or
    one of another format version, 6 some photos could not be read, 7 the photos do not match.
    """  # noqa: D301


for command in (
    *database.COMMANDS,
    cluster,
    describe,
    match,
    locate_command,
    explore,
    colmap,
    reconstruct,
    info,
    demo,
    data,
    train,
    evaluate,
    completion,
):
    app.add_command(command)

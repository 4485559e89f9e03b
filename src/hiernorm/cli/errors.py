"""Errors as a shell shows them: one line, in the words of the command line, with an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from hiernorm.cli.exit_codes import DAMAGED, INTERRUPTED, LOCKED, NO_DATABASE, PIPE_CLOSED
from hiernorm.cli.sections import SectionedGroup
from hiernorm.storage.errors import (
    DamagedError,
    FormatVersionError,
    LockedError,
    NotADatabaseError,
)


class _Damaged(click.ClickException):
    exit_code = DAMAGED


class _Locked(click.ClickException):
    exit_code = LOCKED


class _NoDatabase(click.ClickException):
    exit_code = NO_DATABASE


EXIT_KINDS: dict[type[Exception], type[click.ClickException]] = {
    DamagedError: _Damaged,
    LockedError: _Locked,
    NotADatabaseError: _NoDatabase,
    FormatVersionError: _NoDatabase,
}
"""Errors that have an exit code of their own; that of any other is 1."""

SHELL_WORDS = {
    "ShardedDatabase.create makes one": "`hiernorm cluster build` makes one",
    "Database.create makes one": "`hiernorm build` makes one",
    "open the database with a longer lock_timeout": "wait longer with --wait",
    "give a longer deadline, or take a partial answer (allow_partial=True)": (
        "wait longer with --deadline, or take a partial answer with --allow-partial"
    ),
    "give local=, for copies on the nodes": "give --local, for copies on the nodes",
    "spread_weight": "--spread-weight",
    "phase2_weight": "--phase2-weight",
    "places_per_batch": "--places-per-batch",
    "major_weight": "--major-weight",
    "distill_weight": "--distill-weight",
    "head_epochs": "--head-epochs",
}
"""What the errors of the library advise in Python, and what that is in a shell."""


def one_line(error: Exception) -> click.ClickException:
    """The error in one line, with the exit code of its kind."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    if isinstance(error, OSError) and error.filename is None and error.strerror is not None:
        text = error.strerror
    lines = str(text).splitlines()
    if lines and lines[-1].strip() == "^":  # points at a mistake in the line above it
        lines = lines[:-2]
    reason = " ".join(" ".join(lines).split()) or type(error).__name__
    for words, shell_words in SHELL_WORDS.items():
        reason = reason.replace(words, shell_words)
    return EXIT_KINDS.get(type(error), click.ClickException)(reason)


class OneLineErrors(SectionedGroup):
    """A group that turns any error into one line, unless --debug asks for the traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped by Ctrl-C", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Python would complain when it flushes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise one_line(error) from error

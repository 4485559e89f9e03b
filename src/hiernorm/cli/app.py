"""The `hiernorm` command group: errors in one line, and its commands."""

from __future__ import annotations

from typing import Any

import click

import hiernorm
from hiernorm.cli.bench import bench
from hiernorm.cli.data import data
from hiernorm.cli.demo import demo
from hiernorm.cli.evaluate import evaluate
from hiernorm.cli.info import info
from hiernorm.cli.reproduce import reproduce
from hiernorm.cli.train import train


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
            reason = " ".join(str(error).split()) or type(error).__name__
            raise click.ClickException(reason) from error


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(hiernorm.__version__, prog_name="hiernorm")
def app(debug: bool) -> None:
    """Exact and deterministic vector retrieval by Hierarchical Normalization."""


for command in (info, demo, bench, data, train, evaluate, reproduce):
    app.add_command(command)

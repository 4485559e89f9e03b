"""The `hiernorm` command group: its commands by subject."""

from __future__ import annotations

import click

import hiernorm
from hiernorm.cli.advise import advise
from hiernorm.cli.cluster import cluster
from hiernorm.cli.colmap import colmap
from hiernorm.cli.completion import completion
from hiernorm.cli.data import data
from hiernorm.cli.database import add, build, compact, delete
from hiernorm.cli.demo import demo
from hiernorm.cli.describe import describe
from hiernorm.cli.errors import OneLineErrors
from hiernorm.cli.evaluate import evaluate
from hiernorm.cli.exit_codes import EXIT_CODES
from hiernorm.cli.explore import explore
from hiernorm.cli.help import option
from hiernorm.cli.info import info
from hiernorm.cli.locate import locate_command
from hiernorm.cli.match import match
from hiernorm.cli.options import former_name
from hiernorm.cli.reconstruct import reconstruct
from hiernorm.cli.search import check, export, search
from hiernorm.cli.train import train

EPILOG = "\b\nExit codes:\n" + "\n".join(
    f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()
)


@click.group(
    cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG
)
@option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(hiernorm.__version__, prog_name="hiernorm")
def app(debug: bool) -> None:
    """Exact and deterministic vector search.

    \b
    A database in three commands:
      hiernorm build words.hn embeddings.npy
      hiernorm search words.hn queries.npy -k 5
      hiernorm info words.hn

    Results go to stdout, progress and errors to stderr. `hiernorm COMMAND --help` tells more about
    a command. A command that needs further packages says which, before it starts.
    """  # noqa: D301


former_verify = former_name(check, "verify")
app.add_section(
    "Search", build, add, delete, search, check, former_verify, compact, export, advise, info
)
app.add_section("Search on a cluster", cluster)
app.add_section("Photos", describe, match, locate_command, explore)
app.add_section("Reconstruction", reconstruct, colmap)
app.add_section("Models", train, evaluate, data)
app.add_section("More", demo, completion)

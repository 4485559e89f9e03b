"""Arguments and options that several commands share."""

from __future__ import annotations

import copy
from pathlib import Path

import click

from hiernorm.arrays import as_share
from hiernorm.settings import METRICS


def parse_share(text: str) -> float:
    """The number in a text such as 0.125 or 1/8.

    Examples
    --------
    >>> parse_share("1/8"), parse_share("0.125")
    (0.125, 0.125)
    """
    try:
        return as_share("share", text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no number such as 0.125 or 1/8") from None


def former_name(command: click.Command, name: str) -> click.Command:
    """The command under a former name: it works as before, and warns on stderr."""
    twin = copy.copy(command)
    twin.name, twin.hidden, twin.deprecated = name, True, True
    return twin


PATH = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NO_MATCH = 7
"""Exit code if photos do not match."""
SOURCES = click.argument("sources", nargs=-1, required=True, type=PATH, metavar="FILE...")
MAJOR = click.option(
    "--major", type=click.IntRange(min=1), help="K of HN vectors [chosen from the data]."
)
ALPHA = click.option("--alpha", type=parse_share, help="Energy split of HN vectors, such as 1/8.")
METRIC = click.option(
    "--metric", type=click.Choice(METRICS), default="ip", show_default=True, help="Score."
)
HITS = click.option(
    "-k", default=10, show_default=True, type=click.IntRange(min=1), help="Hits per query."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
PICTURE = click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture of the matches to this file.",
)
MODEL = click.option(
    "--model", default="hn16", show_default=True, help="Name of a shipped model, or an .onnx file."
)
KEYPOINTS = click.option(
    "--keypoints", default=2000, show_default=True, help="Maximum keypoints per photo."
)
LONGEST_SIDE = click.option(
    "--longest-side", default=1600, show_default=True, help="Reduce larger photos to this size."
)

"""Arguments, options and output that several commands share."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import click

from hiernorm.arrays import as_share
from hiernorm.cli.help import option
from hiernorm.learn.phototour import PhotoTour
from hiernorm.settings import METRICS


class Share(click.ParamType):  # type: ignore[type-arg]
    """A number such as 0.125 or 1/8.

    Examples
    --------
    >>> Share().convert("1/8", None, None)
    0.125
    """

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in a text."""
        try:
            return as_share("share", value)
        except ValueError:
            self.fail(f"{value!r} is no number such as 0.125 or 1/8", param, ctx)


class OutputPath(click.Path):
    """A path to write to: if the folder around it does not exist, that is an error before any work.

    Examples
    --------
    >>> OutputPath(dir_okay=False).convert("hits.npz", None, None).name
    'hits.npz'
    """

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"{str(path)!r}: there is no folder {str(path.parent)!r}", param, ctx)
        return path


class OutputPicture(OutputPath):
    """A picture to write; a name that ends otherwise is an error before any work.

    Examples
    --------
    >>> OutputPicture(".png", ".jpg").convert("matches.png", None, None).name
    'matches.png'
    """

    def __init__(self, *suffixes: str) -> None:
        super().__init__(dir_okay=False)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        path = super().convert(value, param, ctx)
        if path.suffix.lower() not in self.suffixes:
            expected = ", ".join(self.suffixes[:-1]) + f" or {self.suffixes[-1]}"
            self.fail(f"{str(path)!r}: pictures are written as {expected}", param, ctx)
        return path


class Scene(click.ParamType):  # type: ignore[type-arg]
    """The path of a scene of patches, a folder or a zip, which must exist."""

    name = "scene"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path as it was given."""
        try:
            PhotoTour.open(value)
        except (OSError, ValueError) as error:
            self.fail(str(error), param, ctx)
        return str(value)


def former_name(command: click.Command, name: str) -> click.Command:
    """The command under a former name: it works as before, and warns on stderr."""
    twin = copy.copy(command)
    twin.name, twin.hidden, twin.deprecated = name, True, True
    return twin


def echo_result(as_json: bool, text: str, **facts: Any) -> None:
    """Print the facts as JSON, or the text."""
    click.echo(json.dumps(facts) if as_json else text)


PATH = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
OUTPUT_PATH = OutputPath()
OUTPUT_FILE = OutputPath(dir_okay=False)
OUTPUT_FOLDER = OutputPath(file_okay=False)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
"""Made with the folders above it."""

DATABASE = click.argument("database", type=PATH)
SHARE = Share()
SCENE = Scene()
SOURCES = click.argument("sources", nargs=-1, required=True, type=EXISTING, metavar="FILE...")
MAJOR = option(
    "--major",
    type=click.IntRange(min=1),
    show_default="chosen from the data",
    help="For HN vectors: K, the size of the major.",
)
ALPHA = option(
    "--alpha", type=SHARE, help="For HN vectors: the minor's share of energy, such as 1/8."
)
METRIC = option(
    "--metric",
    type=click.Choice(METRICS),
    default="ip",
    help="Score: inner product (ip), cosine, or Euclidean distance (l2).",
)
HITS = option(
    "-k",
    default=10,
    type=click.IntRange(min=1),
    help="Hits per query.",
)
THREADS = option(
    "--threads",
    type=click.IntRange(min=1),
    show_default="one per processor",
    help="Number of threads.",
)
JSON = option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
PICTURE = option(
    "-o",
    "--out",
    type=OutputPicture(".png", ".jpg", ".jpeg", ".webp"),
    help="Write a picture of the matches to this file.",
)
MODEL = option(
    "--model", default="hn16", metavar="MODEL", help="Name of a shipped model, or an .onnx file."
)
KEYPOINTS = option(
    "--keypoints",
    default=2000,
    type=click.IntRange(min=1),
    help="Maximum keypoints per photo.",
)
LONGEST_SIDE = option(
    "--longest-side",
    default=1600,
    type=click.IntRange(min=1),
    help="Maximum pixels of the longer side. Larger photos are reduced.",
)

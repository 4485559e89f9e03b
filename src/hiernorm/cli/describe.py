"""`hiernorm describe`: photos into a collection."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from hiernorm.threads import thread_count
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import Recipe
from hiernorm.vision.ingest import find_photos, take_in
from hiernorm.vision.keypoints import DETECTORS

SOME_FAILED = 6
"""Exit code: the collection is complete but for photos that could not be read."""


@click.command()
@click.argument("photos", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The collection, such as holiday.hn; its table is holiday.parquet.",
)
@click.option("--model", default="hn16", show_default=True, help="Shipped, or an .onnx file.")
@click.option("--detector", type=click.Choice(DETECTORS), default="sift", show_default=True)
@click.option("--keypoints", default=2000, show_default=True, help="Of each photo, at most.")
@click.option("--longest-side", default=1600, show_default=True, help="Larger ones are reduced.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; one per processor.")
@click.option("--json", "as_json", is_flag=True, help="Print what became of each photo as JSON.")
def describe(
    photos: tuple[Path, ...],
    out: Path,
    model: str,
    detector: str,
    keypoints: int,
    longest_side: int,
    workers: int | None,
    as_json: bool,
) -> None:
    """Describe photos, or all in a folder, into a collection.

    Run it again and only new and changed photos are described. A photo that cannot be read is
    reported and left out, and the exit code is 6.
    """
    recipe = Recipe(model, detector, keypoints, longest_side)
    console = Console(stderr=True)
    columns = (TextColumn("describing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        outcome = take_in(
            out,
            find_photos(list(photos)),
            recipe,
            workers=thread_count(workers),
            report=lambda done, total: bar.update(task, completed=done, total=total),
        )
    for name, reason in outcome.failed.items():
        click.echo(f"skipped {name}: {reason}", err=True)
    collection = Collection.open(out)
    counts = {
        "added": len(outcome.added),
        "replaced": len(outcome.replaced),
        "unchanged": len(outcome.unchanged),
        "failed": len(outcome.failed),
    }
    if as_json:
        report = {**vars(outcome), "photos": len(collection), "entries": len(collection.ids)}
        click.echo(json.dumps(report))
    else:
        click.echo(", ".join(f"{count} {word}" for word, count in counts.items()))
        click.echo(f"{out}: {len(collection)} photos, {len(collection.ids):,} keypoints")
    if outcome.failed:
        sys.exit(SOME_FAILED)

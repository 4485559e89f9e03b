"""`hiernorm describe`: photos into a collection."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hiernorm.cli.exit_codes import SOME_FAILED
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING, JSON, OUTPUT_FOLDER
from hiernorm.cli.photo_options import feature_options, sizes_of
from hiernorm.cli.progress import progress_bar
from hiernorm.cli.requirements import needs
from hiernorm.models.model import PROVIDERS
from hiernorm.threads import thread_count
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import FeatureSettings
from hiernorm.vision.ingest import find_photos, ingest_photos


@click.command(epilog=examples("hiernorm describe photos -o holiday.hn"))
@click.argument("photos", nargs=-1, required=True, type=EXISTING)
@option(
    "-o",
    "--out",
    required=True,
    type=OUTPUT_FOLDER,
    help="Collection to make or extend, such as holiday.hn with its table holiday.parquet.",
)
@feature_options
@option(
    "--device",
    type=click.Choice(list(PROVIDERS)),
    default="cpu",
    help="Device of the model. Only cpu is tested by us.",
)
@option(
    "--workers",
    type=click.IntRange(min=1),
    show_default="one per processor; one for another device",
    help="Number of processes.",
)
@JSON
@needs("vision", "cv2", "onnxruntime", "pyarrow")
def describe(
    photos: tuple[Path, ...],
    out: Path,
    settings: FeatureSettings,
    device: str,
    workers: int | None,
    as_json: bool,
) -> None:
    """Describe photos and add them to a collection.

    PHOTOS are files, or folders whose photos are all described. Run the command again to describe
    only new and changed photos. A photo that cannot be read is reported and skipped; the exit code
    is then 6.
    """
    with progress_bar("describing", "photos") as progress:
        result = ingest_photos(
            out,
            find_photos(list(photos)),
            settings,
            workers=thread_count(workers if device == "cpu" else workers or 1),
            device=device,
            report=progress,
        )
    for name, reason in result.failed.items():
        click.echo(f"skipped {name}: {reason}", err=True)
    collection = Collection.open(out)
    counts = {
        "added": len(result.added),
        "replaced": len(result.replaced),
        "unchanged": len(result.unchanged),
        "failed": len(result.failed),
    }
    if as_json:
        report = {**vars(result), "photos": len(collection), "entries": len(collection.ids)}
        click.echo(json.dumps(report))
    else:
        click.echo(", ".join(f"{count} {word}" for word, count in counts.items()))
        click.echo(f"{out}: {sizes_of(collection)}")
    if result.failed:
        raise click.exceptions.Exit(SOME_FAILED)

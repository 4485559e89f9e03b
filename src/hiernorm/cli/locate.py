"""`hiernorm locate`: which photos of a collection show the same place."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from hiernorm.cli.exit_codes import NO_MATCH
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING_FILE, JSON, PATH, PICTURE
from hiernorm.cli.photo_options import sizes_of
from hiernorm.cli.progress import working
from hiernorm.cli.requirements import needs
from hiernorm.models import load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.drawing import draw_matches, read_colour, write_picture
from hiernorm.vision.features import describe_photo
from hiernorm.vision.place_recognition import CANDIDATES, NEIGHBOURS, locate


@click.command(
    name="locate", epilog=examples("hiernorm locate photo.jpg --in holiday.hn -o place.png")
)
@click.argument("photo", type=EXISTING_FILE)
@option(
    "--in",
    "path",
    required=True,
    type=PATH,
    help="A collection that `hiernorm describe` made.",
)
@PICTURE
@option("--top", default=5, type=click.IntRange(min=1), help="Number of photos to show.")
@option(
    "--neighbours",
    default=NEIGHBOURS,
    type=click.IntRange(min=1),
    help="Votes of each descriptor.",
)
@option(
    "--candidates",
    default=CANDIDATES,
    type=click.IntRange(min=1),
    help="Maximum photos to verify.",
)
@JSON
@needs("vision", "cv2", "onnxruntime", "pyarrow")
def locate_command(
    photo: Path,
    path: Path,
    out: Path | None,
    top: int,
    neighbours: int,
    candidates: int,
    as_json: bool,
) -> None:
    """Find the photos of a collection that show the place of PHOTO.

    Every descriptor votes for the photos of its exact nearest neighbours. The photos with the most
    votes are verified geometrically. A photo matches if more descriptors agree on one geometry than
    chance would give. Photos that match come first, by inliers; the others follow by votes. The
    picture shows the best photo beside PHOTO. The exit code is 7 if no photo matches.
    """
    collection = Collection.open(path)
    model = load_model(collection.settings.model)
    start = time.perf_counter()
    name = collection.name_of(photo)
    itself = [number for number, known in enumerate(collection.photos) if known.name == name]
    with working(f"describing {photo.name}") as show:
        query = describe_photo(photo, collection.settings, model)
        described = time.perf_counter()
        show(f"searching {len(collection):,} photos")
        found = locate(
            collection,
            query,
            neighbours=neighbours,
            candidates=candidates,
            leave_out=itself[0] if itself else None,
        )
    seconds = {"describe": described - start, "locate": time.perf_counter() - described}
    convincing = bool(found) and found[0].convincing
    rows = [
        {
            "photo": collection.photos[c.photo].name,
            "inliers": c.inliers,
            "distinct_matches": c.match.evidence.matches,
            "distinct_inliers": c.match.evidence.inliers,
            "needed": c.match.evidence.needed,
            "convincing": c.convincing,
            "matches": len(c.match.matches),
            "votes": c.votes,
        }
        for c in found[:top]
    ]
    if as_json:
        click.echo(json.dumps({"found": rows, "convincing": convincing, "seconds": seconds}))
    else:
        click.echo("verdict   inliers  matches  votes  photo")
        for row in rows:
            verdict = "match" if row["convincing"] else "no match"
            click.echo(
                f"{verdict:<8}{row['inliers']:>9}{row['matches']:>9}{row['votes']:>7}  "
                f"{row['photo']}"
            )
        times = ", ".join(f"{step} {s:.2f} s" for step, s in seconds.items())
        click.echo(f"{sizes_of(collection)}; {times}")
        if not convincing:
            reason = (
                f"of the best, {found[0].match.evidence.reason}"
                if found
                else "there is nothing to compare with"
            )
            click.echo(f"no photo matches: {reason}", err=True)
    if out is not None and found:
        best = found[0]
        pairs, frames = best.match.matches.pairs, collection.keypoints_of(best.photo)[1]
        points = query.frames.centres[pairs[:, 0]], frames.centres[pairs[:, 1]]
        photos = read_colour(photo), read_colour(collection.file_of(best.photo))
        verdict = "match" if convincing else "no match"
        title = (
            f"{verdict}, {collection.photos[best.photo].name}: {best.inliers} of {len(pairs)} agree"
        )
        write_picture(out, draw_matches(photos, points, best.match.geometry.inliers, title))
    if not convincing:
        raise click.exceptions.Exit(NO_MATCH)

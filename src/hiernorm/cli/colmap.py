"""`hiernorm colmap`: exact matches in a database of COLMAP."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from hiernorm.adapters.colmap import (
    ColmapDatabase,
    MatchingOptions,
    compare_matches,
    exhaustive_pairs,
    match_database,
    read_pairs,
    retrieve_pairs,
    sequential_pairs,
    verify_pairs,
    write_pairs,
)
from hiernorm.adapters.colmap.database import WAIT_SECONDS
from hiernorm.adapters.colmap.locking import one_writer
from hiernorm.adapters.colmap.matcher import common_type
from hiernorm.adapters.colmap.pairing import has_spaces, pair_line
from hiernorm.adapters.colmap.records import Pair
from hiernorm.cli.colmap_comparison import comparison_facts, echo_table
from hiernorm.cli.help import examples, option
from hiernorm.cli.info import echo_facts
from hiernorm.cli.options import (
    DATABASE,
    EXISTING_FILE,
    EXISTING_FOLDER,
    JSON,
    OUTPUT_FILE,
    PICTURE,
    THREADS,
)
from hiernorm.cli.progress import progress_bar
from hiernorm.cli.requirements import needs

MAX_RATIO = option(
    "--max-ratio",
    type=click.FloatRange(min=0, min_open=True),
    show_default="0.8 for SIFT",
    help="Largest share of the second smallest angle.",
)
MAX_DISTANCE = option(
    "--max-distance",
    type=click.FloatRange(min=0, max=math.pi, min_open=True),
    show_default="0.7 for SIFT",
    help="Largest angle of a match in radians.",
)
CROSS_CHECK = option(
    "--cross-check/--no-cross-check",
    default=True,
    help="Whether a match must hold in both directions.",
)


@click.group()
def colmap() -> None:
    """Match the images of a COLMAP database exactly.

    \b
    colmap feature_extractor --database_path database.db --image_path photos
    hiernorm colmap match database.db
    colmap mapper --database_path database.db --image_path photos --output_path sparse
    """  # noqa: D301


@colmap.command(
    epilog=examples(
        "hiernorm colmap match database.db", "hiernorm colmap match database.db --retrieve 20"
    )
)
@DATABASE
@option("--pairs", type=EXISTING_FILE, help="Match the pairs of this file, two names a line.")
@option(
    "--retrieve",
    type=click.IntRange(min=1),
    help="Match each image with this many that look alike, found by `colmap pairs`.",
)
@option(
    "--sequential",
    type=click.IntRange(min=1),
    help="Match each image with this many that follow it in the order of names.",
)
@MAX_RATIO
@MAX_DISTANCE
@CROSS_CHECK
@option("--replace", is_flag=True, help="Match pairs again that have matches already.")
@option(
    "--verify/--no-verify",
    default=True,
    help="Whether COLMAP verifies the matches geometrically (needs pycolmap).",
)
@THREADS
@JSON
@needs("colmap", "pycolmap", when=lambda given: given["verify"])
def match(
    database: Path,
    pairs: Path | None,
    retrieve: int | None,
    sequential: int | None,
    max_ratio: float | None,
    max_distance: float | None,
    cross_check: bool,
    replace: bool,
    verify: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Match images exactly and write the matches into DATABASE.

    All pairs are matched, unless --pairs, --retrieve or --sequential chooses some. For SIFT the
    matches equal those of COLMAP's brute-force matcher. An interrupted run is continued by running
    it again: pairs that have matches are kept. Then `colmap mapper` or `pycolmap` maps as usual.
    """
    if sum(choice is not None for choice in (pairs, retrieve, sequential)) > 1:
        raise click.UsageError("choose one of --pairs, --retrieve and --sequential")
    with ColmapDatabase(database, writable=True) as opened, one_writer(database, WAIT_SECONDS):
        _require_two(database, len(opened.images()), "image")
        wanted = _choose_pairs(opened, pairs, retrieve, sequential, threads)
        options = MatchingOptions.for_type(
            common_type(opened, wanted), max_ratio, max_distance, cross_check
        )
        with progress_bar("matching", "pairs") as show:
            report = match_database(
                database, wanted, options, replace=replace, threads=threads, progress=show
            )
        facts: dict[str, Any] = {
            "pairs matched": report.matched,
            "pairs kept": report.kept,
            "matches": report.matches,
            "time": round(report.seconds, 2) if as_json else f"{report.seconds:.2f} s",
        }
        if verify:
            with progress_bar("verifying", "pairs") as show:
                facts["pairs verified"] = verify_pairs(
                    database, wanted, threads=threads, progress=show
                )
    echo_facts(facts, as_json)
    if report.kept and not as_json:
        click.echo(
            f"{report.kept:,} pairs had matches and were kept; --replace matches them again.",
            err=True,
        )


@colmap.command(epilog=examples("hiernorm colmap pairs database.db --top 20 -o pairs.txt"))
@DATABASE
@option("--top", default=20, type=click.IntRange(min=1), help="Images per image.")
@option(
    "-o",
    "--out",
    type=OUTPUT_FILE,
    show_default="stdout",
    help="Write the pairs to this file.",
)
@THREADS
@JSON
def pairs(database: Path, top: int, out: Path | None, threads: int | None, as_json: bool) -> None:
    """List the pairs of images that look alike, two names a line.

    Descriptors of all images vote for the images of their exact nearest neighbours. COLMAP reads
    the file too: `colmap matches_importer --match_list_path`. A tab stands between names with
    spaces; COLMAP cannot read these.
    """
    with ColmapDatabase(database) as opened:
        images = opened.images()
        left_out = [image.name for image in images if image.descriptors is None]
        _require_two(database, len(images) - len(left_out), "image with descriptors")
        with progress_bar("voting", "images") as show:
            found = retrieve_pairs(opened, top, threads=threads, progress=show)
    if out is not None:
        write_pairs(out, found, images)
    if left_out:
        many = "s" if len(left_out) > 1 else ""
        click.echo(
            f"{len(left_out):,} image{many} without descriptors {'were' if many else 'was'} left "
            f"out: {', '.join(left_out[:5])}{', ...' if left_out[5:] else ''}",
            err=True,
        )
    names = {image.image_id: image.name for image in images}
    listed = [[names[a], names[b]] for a, b in found]
    if as_json:
        click.echo(json.dumps({"pairs": listed}))
    elif out is None:
        for first, second in listed:
            click.echo(pair_line(first, second))
    else:
        click.echo(f"{len(found):,} pairs in {out}")
        odd = sum(has_spaces(*pair) for pair in listed)
        if odd:
            click.echo(
                f"{odd:,} pairs have names with spaces: `hiernorm colmap match --pairs` reads "
                "them, COLMAP leaves them out",
                err=True,
            )


@colmap.command(
    epilog=examples("hiernorm colmap compare database.db --photos photos -o missed.png")
)
@DATABASE
@PICTURE
@option(
    "--photos",
    type=EXISTING_FOLDER,
    help="Folder of the photos, for the picture.",
)
@MAX_RATIO
@MAX_DISTANCE
@CROSS_CHECK
@THREADS
@JSON
@needs("colmap", "cv2", when=lambda given: given["out"] is not None)
def compare(
    database: Path,
    out: Path | None,
    photos: Path | None,
    max_ratio: float | None,
    max_distance: float | None,
    cross_check: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Compare the matches in DATABASE with exact ones.

    The command counts the matches that DATABASE misses, and those that it has beyond the exact
    ones. DATABASE is only read. The picture shows the pair that misses the most.
    """
    if photos is not None and out is None:
        raise click.UsageError("--photos is for the picture: choose its file with --out")
    with ColmapDatabase(database) as opened:
        kind = common_type(opened, exhaustive_pairs(opened.images()))
    options = MatchingOptions.for_type(kind, max_ratio, max_distance, cross_check)
    with progress_bar("matching", "pairs") as show:
        found = compare_matches(database, options, threads=threads, progress=show)
    if not found.pairs:
        raise click.ClickException(f"{database} has no matches to compare: match it first")
    if as_json:
        click.echo(json.dumps(comparison_facts(found)))
    else:
        echo_table(found)
    if out is not None:  # after the counts: they are worth the work without a picture too
        from hiernorm.adapters.colmap.pictures import write_comparison

        write_comparison(out, database, found, photos)
        if not as_json:
            click.echo(f"picture: {out}")


def _require_two(database: Path, found: int, what: str) -> None:
    """Raise unless there are two images, which make a pair."""
    if found < 2:
        raise ValueError(
            f"{database} has {found} {what}, a pair needs 2: run COLMAP's feature extraction first"
        )


def _choose_pairs(
    opened: ColmapDatabase,
    pairs: Path | None,
    retrieve: int | None,
    sequential: int | None,
    threads: int | None,
) -> list[Pair]:
    """The pairs that the options name."""
    images = opened.images()
    if pairs is not None:
        return read_pairs(pairs, images)
    if retrieve is not None:
        with progress_bar("voting", "images") as show:
            return retrieve_pairs(opened, retrieve, threads=threads, progress=show)
    if sequential is not None:
        return sequential_pairs(images, sequential)
    return exhaustive_pairs(images)

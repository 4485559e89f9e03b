"""`hiernorm data`: make scenes of patches from photos, download the official ones."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from hiernorm.learn.scenes.archives import ARCHIVES, Archive
from hiernorm.learn.scenes.download import PINS, download, find_archive
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import Made, Recipe, make_scene
from hiernorm.learn.scenes.matched import TrackRecipe, make_matched_scene
from hiernorm.learn.scenes.views import Variation
from hiernorm.vision.geometry import GEOMETRIES
from hiernorm.vision.photos import list_photos

DEFAULT = Recipe()
TRACKS = TrackRecipe()
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, a line each.")


@click.group()
def data() -> None:
    """Make or download scenes: patches of the same points in several photos."""


@data.command("make")
@click.option(
    "--photos",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder of photos; without it, the photographs inside scikit-image.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to make, or a zip if the name ends in .zip.",
)
@click.option("--points", default=DEFAULT.points, show_default=True, help="Per photo at most.")
@click.option("--views", default=DEFAULT.views, show_default=True, help="Per point at most.")
@click.option(
    "--strong",
    is_flag=True,
    help="Without --tracks: strong changes of light, blur and noise, and JPEG compression.",
)
@click.option(
    "--pairs",
    default=DEFAULT.pairs,
    show_default=True,
    help="Matching pairs at most, and as many non-matching ones.",
)
@click.option("--seed", default=DEFAULT.seed, show_default=True, help="Seed of all that is drawn.")
@click.option(
    "--tracks",
    is_flag=True,
    help="Photos of one place: points are what several of them show; no view is made.",
)
@click.option(
    "--keypoints",
    default=TRACKS.keypoints,
    show_default=True,
    help="With --tracks: per photo at most.",
)
@click.option(
    "--descriptor",
    default=TRACKS.descriptor,
    show_default=True,
    help="With --tracks: what keypoints are matched by: sift, or a model of the package.",
)
@click.option(
    "--partners",
    default=TRACKS.partners,
    show_default=True,
    help="With --tracks: photos that each photo is matched with; 0 for all.",
)
@click.option(
    "--ratio",
    default=TRACKS.ratio,
    show_default=True,
    help="With --tracks: largest ratio of the nearest to the second nearest distance.",
)
@click.option(
    "--geometry",
    type=click.Choice(GEOMETRIES),
    default=TRACKS.geometry,
    show_default=True,
    help="With --tracks: what matches must agree on.",
)
@JSON
def make(
    folder: Path | None,
    out: Path,
    points: int,
    views: int,
    strong: bool,
    pairs: int,
    seed: int,
    tracks: bool,
    keypoints: int,
    descriptor: str,
    partners: int,
    ratio: float,
    geometry: str,
    as_json: bool,
) -> None:
    """Make a scene in the UBC format from photos.

    Keypoints are seen again through random homographies, in other light and with the noise of a
    detector; with --tracks, in the photos that show the same place. The same photos and options
    give the same bytes.
    """
    if tracks and folder is None:
        raise click.UsageError("--tracks needs --photos, a folder of photos of one place")
    photos = embedded_photos() if folder is None else list_photos(folder)
    if tracks:
        wanted = TrackRecipe(
            descriptor=descriptor,
            keypoints=keypoints,
            partners=partners,
            ratio=ratio,
            geometry=geometry,
            pairs=pairs,
            seed=seed,
        )
        made = _make_tracks(photos, out, wanted)
    else:
        variation = Variation.strong() if strong else DEFAULT.variation
        recipe = Recipe(points, views, pairs=pairs, seed=seed, variation=variation)
        made = _make_views(photos, out, recipe)
    if as_json:
        counts = {"patches": made.patches, "points": made.points, "photos": made.photos}
        click.echo(json.dumps({"path": str(out), **counts}))
        return
    click.echo(f"{out}: {made.patches:,} patches of {made.points:,} points, {made.photos} photos")


def _make_views(photos: list[Path], out: Path, recipe: Recipe) -> Made:
    with _progress(TextColumn("{task.completed}/{task.total} photos")) as progress:
        task = progress.add_task(out.name, total=len(photos))
        return make_scene(photos, out, recipe, on_photo=lambda photo: progress.advance(task))


def _make_tracks(photos: list[Path], out: Path, recipe: TrackRecipe) -> Made:
    with _progress(TextColumn("{task.completed}/{task.total}")) as progress:
        task = progress.add_task(out.name, total=None)
        return make_matched_scene(
            photos,
            out,
            recipe,
            on_step=lambda what, done, total: progress.update(
                task, description=what, completed=done, total=total
            ),
        )


@data.command("download", epilog=f"Scenes: {', '.join(ARCHIVES)}.")
@click.argument("scenes", nargs=-1, required=True, metavar="SCENE...")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    show_default=True,
    help="Folder for the archives.",
)
@JSON
def fetch(scenes: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Download official scenes of the UBC patches.

    Archives are compared with their published digests. Those without one are compared with the
    digest of their first download, which is kept beside them. A download that broke off continues
    when the command is run again.
    """
    for archive in [find_archive(scene) for scene in scenes]:
        _fetch_one(archive, folder, as_json)


def _fetch_one(archive: Archive, folder: Path, as_json: bool) -> None:
    with _progress(DownloadColumn(binary_units=True)) as progress:
        task = progress.add_task(archive.scene, total=None)
        got = download(
            archive,
            folder,
            lambda have, total: progress.update(task, completed=have, total=total),
        )
    if as_json:
        facts = {"digest": got.digest, "newly_pinned": got.newly_pinned}
        click.echo(json.dumps({"path": str(got.file), **facts}))
        return
    proof = f"matches {got.digest}"
    if got.newly_pinned:
        proof = f"no digest is published; pinned in {folder / PINS}: {got.digest}"
    click.echo(f"{got.file}: {proof}")


def _progress(amount: TextColumn | DownloadColumn) -> Progress:
    """A bar with the time left, on stderr, where that is a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )

"""`hiernorm data`: make scenes of patches from photos, download the official ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from rich.progress import DownloadColumn, TextColumn

from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING_FOLDER, NEW_FOLDER, OUTPUT_PATH
from hiernorm.cli.progress import make_progress
from hiernorm.cli.requirements import needs
from hiernorm.learn.scenes.archives import ARCHIVES, Archive
from hiernorm.learn.scenes.download import PINS, download, find_archive
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import SceneSettings, SceneSummary, make_scene
from hiernorm.learn.scenes.matched import TrackSettings, make_matched_scene
from hiernorm.learn.scenes.views import Variation
from hiernorm.vision.geometry import GEOMETRIES
from hiernorm.vision.photos import list_photos

DEFAULT = SceneSettings()
TRACKS = TrackSettings()
R = TypeVar("R")
COUNT = click.IntRange(min=1)
OF_VIEWS = ("points", "views", "strong")
OF_TRACKS = ("keypoints", "descriptor", "partners", "ratio", "geometry")
"""Options of `data make` without --tracks, and with it."""

JSON = option("--json", "as_json", is_flag=True, help="Print one JSON object per scene.")


def _track_option(
    name: str, text: str, kind: click.ParamType[Any] | None = None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """An option that only ``--tracks`` uses, with the default of its settings."""
    return option(
        f"--{name}",
        type=kind,
        default=getattr(TRACKS, name),
        show_default=True,
        help=f"With --tracks: {text}",
    )


@click.group()
def data() -> None:
    """Make or download scenes of patches.

    A scene holds patches of the same points in several photos.
    """


@data.command(
    "make",
    epilog=examples(
        "hiernorm data make --out scene.zip",
        "hiernorm data make --photos photos --tracks --out place.zip",
    ),
)
@option(
    "--photos",
    "folder",
    type=EXISTING_FOLDER,
    show_default="the photographs inside scikit-image",
    help="Folder of photos.",
)
@option(
    "-o",
    "--out",
    type=OUTPUT_PATH,
    required=True,
    help="Folder to make, or a zip if the name ends in .zip.",
)
@option(
    "--points",
    default=DEFAULT.points,
    type=COUNT,
    help="Maximum points per photo. Not with --tracks.",
)
@option(
    "--views",
    default=DEFAULT.views,
    type=click.IntRange(min=2),
    help="Maximum views per point. Not with --tracks.",
)
@option(
    "--strong",
    is_flag=True,
    help="Change light, blur and noise strongly and compress by JPEG. Not with --tracks.",
)
@option(
    "--pairs",
    default=DEFAULT.pairs,
    type=COUNT,
    help="Maximum matching pairs. There are as many non-matching pairs.",
)
@option(
    "--seed", default=DEFAULT.seed, type=click.IntRange(min=0), help="Seed of the random choices."
)
@option(
    "--tracks",
    is_flag=True,
    help="Take points that several photos of one place show. No view is rendered.",
)
@_track_option("keypoints", "maximum keypoints per photo.", COUNT)
@_track_option("descriptor", "descriptor of the keypoints, sift or a model of the package.")
@_track_option(
    "partners", "number of photos to match each photo with. 0 means all.", click.IntRange(min=0)
)
@_track_option(
    "ratio",
    "maximum ratio of the nearest to the second nearest distance.",
    click.FloatRange(0, 1, min_open=True),
)
@_track_option("geometry", "geometry that the matches must agree with.", click.Choice(GEOMETRIES))
@JSON
@needs("data", "cv2")
@needs("data", "skimage", when=lambda given: given["folder"] is None and not given["tracks"])
@needs("data", "onnxruntime", when=lambda given: given["tracks"] and given["descriptor"] != "sift")
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

    The command renders views of each photo by random homographies, changes their light and adds
    the noise of a detector. With --tracks it finds the same points in several photos of one place
    instead. The same photos and options give the same bytes.
    """
    if tracks and folder is None:
        raise click.UsageError("--tracks needs --photos, a folder of photos of one place")
    _refuse_unused(OF_VIEWS if tracks else OF_TRACKS, tracks)
    photos = embedded_photos() if folder is None else list_photos(folder)
    if tracks:
        wanted = TrackSettings(
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
        settings = SceneSettings(points, views, pairs=pairs, seed=seed, variation=variation)
        made = _make_views(photos, out, settings)
    if as_json:
        counts = {"patches": made.patches, "points": made.points, "photos": made.photos}
        click.echo(json.dumps({"path": str(out), **counts}))
        return
    click.echo(f"{out}: {made.patches:,} patches of {made.points:,} points, {made.photos} photos")


def _refuse_unused(names: Sequence[str], tracks: bool) -> None:
    """Refuse options that were given and would be ignored."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is {'not for' if tracks else 'for'} --tracks")


def _make_views(photos: list[Path], out: Path, settings: SceneSettings) -> SceneSummary:
    with make_progress(TextColumn("{task.completed}/{task.total} photos")) as progress:
        task = progress.add_task(out.name, total=len(photos))
        return make_scene(photos, out, settings, on_photo=lambda photo: progress.advance(task))


def _make_tracks(photos: list[Path], out: Path, settings: TrackSettings) -> SceneSummary:
    with make_progress(TextColumn("{task.completed}/{task.total}")) as progress:
        task = progress.add_task(out.name, total=None)
        return make_matched_scene(
            photos,
            out,
            settings,
            on_step=lambda what, done, total: progress.update(
                task, description=what, completed=done, total=total
            ),
        )


@data.command(
    "download",
    epilog=examples("hiernorm data download liberty", also=f"Scenes: {', '.join(ARCHIVES)}."),
)
@click.argument("scenes", nargs=-1, required=True, metavar="SCENE...")
@option(
    "-o",
    "--out",
    "--to",
    "folder",
    type=NEW_FOLDER,
    default=Path("data"),
    help="Folder for the archives.",
)
@JSON
@needs("data", "pooch", "requests")
def fetch(scenes: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Download official scenes of the UBC patches.

    The command compares each archive with its published digest. If no digest is published, it
    stores the digest of the first download beside the archive and compares later downloads with
    it. Run the command again to continue a download that was interrupted.
    """
    for archive in [find_archive(scene) for scene in scenes]:
        _fetch_one(archive, folder, as_json)


def _fetch_one(archive: Archive, folder: Path, as_json: bool) -> None:
    with make_progress(DownloadColumn(binary_units=True)) as progress:
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

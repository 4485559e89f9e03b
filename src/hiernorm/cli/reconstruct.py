"""`hiernorm reconstruct`: photos in, a sparse model out."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import TaskID, TextColumn

from hiernorm.cli.help import examples, option
from hiernorm.cli.info import echo_facts
from hiernorm.cli.options import EXISTING_FOLDER, JSON, LONGEST_SIDE, MODEL, NEW_FOLDER, THREADS
from hiernorm.cli.progress import make_progress
from hiernorm.cli.requirements import needs


@click.command(
    epilog=examples(
        "hiernorm reconstruct photos -o room",
        "hiernorm reconstruct video-frames -o street --single-camera",
    )
)
@click.argument("photos", type=EXISTING_FOLDER)
@option(
    "-o",
    "--out",
    required=True,
    type=NEW_FOLDER,
    help="Folder of the result: database.db, sparse/0 and on (the largest model first), model.png, "
    "model.html.",
)
@MODEL
@option(
    "--keypoints", default=4096, type=click.IntRange(min=1), help="Maximum keypoints per photo."
)
@LONGEST_SIDE
@option(
    "--retrieve",
    type=click.IntRange(min=1),
    show_default="all, or 20 of more than 60",
    help="Match each photo with this many that look alike.",
)
@option(
    "--single-camera",
    is_flag=True,
    help="One camera took all photos, with one lens and zoom: estimate its focal length once.",
)
@THREADS
@JSON
@needs("colmap", "cv2", "onnxruntime", "pycolmap")
def reconstruct(
    photos: Path,
    out: Path,
    model: str,
    keypoints: int,
    longest_side: int,
    retrieve: int | None,
    single_camera: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Reconstruct the scene that the photos of a folder show.

    Photos are described by a shipped model and matched exactly. COLMAP verifies the matches and
    maps. The result has COLMAP's own files, a picture and a page on which the model can be turned.
    Run it again to continue what was interrupted, or after photos were added, replaced or removed.
    """
    from hiernorm.vision.features import FeatureSettings
    from hiernorm.vision.reconstruct import reconstruct_photos

    settings = FeatureSettings(model, "sift", keypoints, longest_side)
    with make_progress(TextColumn("{task.completed:,} of {task.total:,}")) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done, total=total)

        made = reconstruct_photos(
            photos,
            out,
            settings=settings,
            retrieve=retrieve,
            single_camera=single_camera,
            threads=threads,
            progress=show,
        )
    facts = {
        "photos": made.photos,
        "registered": made.registered,
        "points": made.points,
        "track length": round(made.track_length, 2),
        "error in pixels": round(made.reprojection_error, 3),
        "time": {step: round(value, 2) for step, value in made.seconds.items()}
        if as_json
        else ", ".join(f"{step} {value:.1f} s" for step, value in made.seconds.items()),
        "model": str(made.folder / "sparse" / "0"),
        "picture": str(made.folder / "model.png"),
        "page": str(made.folder / "model.html"),
    }
    echo_facts(facts, as_json)

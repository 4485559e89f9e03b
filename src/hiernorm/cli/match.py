"""`hiernorm match`: the matches of two photos, verified, as numbers and as a picture."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from hiernorm.models import load_model
from hiernorm.vision.drawing import draw_matches, read_colour, write_picture
from hiernorm.vision.features import Recipe, describe_photo
from hiernorm.vision.geometry import GEOMETRIES
from hiernorm.vision.keypoints import DETECTORS
from hiernorm.vision.photo_match import pair_photos, places_of

PHOTO = click.Path(path_type=Path)


@click.command()
@click.argument("first", type=PHOTO)
@click.argument("second", type=PHOTO)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Picture.")
@click.option("--model", default="hn16", show_default=True, help="Shipped, or an .onnx file.")
@click.option("--detector", type=click.Choice(DETECTORS), default="sift", show_default=True)
@click.option("--keypoints", default=2000, show_default=True, help="Of each photo, at most.")
@click.option("--longest-side", default=1600, show_default=True, help="Larger ones are reduced.")
@click.option("--geometry", type=click.Choice(GEOMETRIES), default="auto", show_default=True)
@click.option("--threshold", default=2.0, show_default=True, help="Pixels an inlier may be off.")
@click.option("--ratio", type=float, help="Ratio test; none unless given.")
@click.option("--json", "as_json", is_flag=True, help="Print numbers and matches as JSON.")
def match(
    first: Path,
    second: Path,
    out: Path | None,
    model: str,
    detector: str,
    keypoints: int,
    longest_side: int,
    geometry: str,
    threshold: float,
    ratio: float | None,
    as_json: bool,
) -> None:
    """Match two photos: describe, find mutual nearest descriptors, verify by MAGSAC, draw."""
    recipe = Recipe(model, detector, keypoints, longest_side)
    network = load_model(model)
    start = time.perf_counter()
    one, other = (describe_photo(file, recipe, network) for file in (first, second))
    described = time.perf_counter() - start
    found = pair_photos(one, other, ratio=ratio, geometry=geometry, threshold=threshold)
    pairs, agreement = found.matches.pairs, found.agreement
    places = places_of(one.frames)[pairs[:, 0]], places_of(other.frames)[pairs[:, 1]]
    seconds = {"describe": described, **found.seconds}
    if out is not None:
        title = f"{agreement.count} of {len(pairs)} matches agree ({agreement.geometry})"
        photos = read_colour(first), read_colour(second)
        write_picture(out, draw_matches(photos, places, agreement.inliers, title))
    if as_json:
        report = {
            "keypoints": [len(one.frames), len(other.frames)],
            "matches": len(pairs),
            "inliers": agreement.count,
            "geometry": agreement.geometry,
            "matrix": None if agreement.matrix is None else agreement.matrix.tolist(),
            "seconds": seconds,
            "first": places[0][agreement.inliers].tolist(),
            "second": places[1][agreement.inliers].tolist(),
            "scores": found.matches.scores[agreement.inliers].tolist(),
        }
        click.echo(json.dumps(report))
        return
    click.echo(f"keypoints   {len(one.frames)} and {len(other.frames)}")
    click.echo(f"matches     {len(pairs)} (mutual nearest, exact)")
    click.echo(f"inliers     {agreement.count} ({agreement.geometry}, {threshold:g} px)")
    click.echo("time        " + ", ".join(f"{name} {s:.2f} s" for name, s in seconds.items()))
    if out is not None:
        click.echo(f"picture     {out}")

"""`hiernorm match`: the matches of two photos, verified, as numbers and as a picture."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from hiernorm.cli.exit_codes import NO_MATCH
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING_FILE, JSON, PICTURE
from hiernorm.cli.photo_options import GEOMETRY, feature_options
from hiernorm.cli.progress import working
from hiernorm.cli.requirements import needs
from hiernorm.matching import RATIO
from hiernorm.models import load_model
from hiernorm.vision.drawing import draw_matches, read_colour, write_picture
from hiernorm.vision.features import FeatureSettings, describe_photo
from hiernorm.vision.photo_match import match_photos


@click.command(
    epilog=examples(
        "hiernorm match A.jpg B.jpg", "hiernorm match A.jpg B.jpg --keypoints 4000 -o matches.png"
    )
)
@click.argument("first", type=EXISTING_FILE)
@click.argument("second", type=EXISTING_FILE)
@PICTURE
@feature_options
@GEOMETRY
@option(
    "--threshold",
    default=2.0,
    type=click.FloatRange(min=0, min_open=True),
    help="Maximum error of an inlier in pixels.",
)
@option(
    "--ratio",
    default=RATIO,
    type=click.FloatRange(0, 1),
    help="Threshold of the ratio test. 0 means no test.",
)
@JSON
@needs("vision", "cv2", "onnxruntime")
def match(
    first: Path,
    second: Path,
    out: Path | None,
    settings: FeatureSettings,
    geometry: str,
    threshold: float,
    ratio: float,
    as_json: bool,
) -> None:
    """Match two photos and say whether they show the same thing.

    Both photos are described. Descriptors that are each other's nearest and pass the ratio test are
    matched, and the geometry that most of them agree with is estimated by MAGSAC. The photos match
    if more matches agree than chance would give. The exit code is 7 if they do not.
    """
    network = load_model(settings.model)
    start = time.perf_counter()
    with working(f"describing {first.name}") as show:
        one = describe_photo(first, settings, network)
        show(f"describing {second.name}")
        other = describe_photo(second, settings, network)
        described = time.perf_counter() - start
        show("matching")
        found = match_photos(
            one, other, ratio=ratio or None, geometry=geometry, threshold=threshold
        )
    pairs, estimate = found.matches.pairs, found.geometry
    points = one.frames.centres[pairs[:, 0]], other.frames.centres[pairs[:, 1]]
    seconds = {"describe": described, **found.seconds}
    verdict = "match" if found.evidence.convincing else "no match"
    if out is not None:
        title = f"{verdict}: {estimate.count} of {len(pairs)} agree ({estimate.kind})"
        photos = read_colour(first), read_colour(second)
        write_picture(out, draw_matches(photos, points, estimate.inliers, title))
    if as_json:
        report = {
            "keypoints": [len(one.frames), len(other.frames)],
            "matches": len(pairs),
            "inliers": estimate.count,
            "distinct_matches": found.evidence.matches,
            "distinct_inliers": found.evidence.inliers,
            "needed": found.evidence.needed,
            "convincing": found.evidence.convincing,
            "reason": found.evidence.reason,
            "geometry": estimate.kind,
            "matrix": None if estimate.matrix is None else estimate.matrix.tolist(),
            "seconds": seconds,
            "first": points[0][estimate.inliers].tolist(),
            "second": points[1][estimate.inliers].tolist(),
            "scores": found.matches.scores[estimate.inliers].tolist(),
        }
        click.echo(json.dumps(report))
    else:
        tested = f", ratio {ratio:g}" if ratio else ""
        click.echo(f"keypoints   {len(one.frames)} and {len(other.frames)}")
        click.echo(f"matches     {len(pairs)} (mutual nearest{tested}, exact)")
        click.echo(f"inliers     {estimate.count} ({estimate.kind}, {threshold:g} px)")
        click.echo(f"verdict     {verdict}: {found.evidence.reason}")
        click.echo("time        " + ", ".join(f"{name} {s:.2f} s" for name, s in seconds.items()))
        if out is not None:
            click.echo(f"picture     {out}")
    if not found.evidence.convincing:
        raise click.exceptions.Exit(NO_MATCH)

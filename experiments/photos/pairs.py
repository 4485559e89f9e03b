"""How well photos are matched: our descriptors and OpenCV's SIFT at the same keypoints.

Pairs of photos of a scene with tracks: the scene's archive (PhotoTour) says which patches show the
same 3-D point, and where in which photo. The tracks that both photos of a pair see give its true
geometry: a homography (MAGSAC) where one explains at least four fifths of them, so that what is
seen is a plane; else a fundamental matrix (LMedS). A match is correct if it lies within 3 pixels of
the place, or of its epipolar lines, by that matrix. A pair is a success if the matrix of the same
kind that MAGSAC estimates from a method's matches has at least half of the tracks within 3 pixels,
and at least 15 inliers are correct. Pairs are chosen evenly from the fewest common tracks to the
most: the third with the fewest is "hard", the next "medium", the rest "easy".

All methods have the same keypoints. Our descriptors are matched with mutual nearest neighbours,
once without and once with the ratio test of `hiernorm match`. SIFT is matched by OpenCV's
BFMatcher, once with cross-check and once with Lowe's ratio test of 0.8. The tracks were mostly
found by SIFT, which favours it.
"""

from __future__ import annotations

import time
import zipfile
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import hiernorm
from experiments.harness.command import (
    EXISTING_FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder, read_record
from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.learn import PhotoTour
from hiernorm.matching import RATIO
from hiernorm.vision import Frames, detect, estimate_geometry, list_photos, read_grey
from hiernorm.vision.geometry import epipolar_distances
from hiernorm.vision.patches import cut_patches

cv2 = import_extra("cv2", extra="vision")

SCENES = ("fox", "monstree")
MODELS = ("hardnet", "hn16", "hn8")
RATIO_TESTED = {f"{name} ratio {RATIO}": name for name in MODELS}
METHODS = (*MODELS, *RATIO_TESTED, "sift cross-check", "sift ratio 0.8")
TOLERANCE = 3.0
PLANAR = 0.8
LEAST_TRACKS = 16
LEAST_CORRECT = 15


@dataclass(frozen=True)
class Truth:
    """The geometry of a pair by its tracks: what kind, the matrix, the tracks ``(n, 2)`` each."""

    geometry: str
    matrix: Float64Array
    tracks: tuple[Float64Array, Float64Array]


@dataclass
class Photo:
    """One photo: its keypoints and each method's descriptors."""

    frames: Frames
    descriptors: dict[str, npt.NDArray[np.float32]]


def describe(file: Path, limit: int, models: dict[str, hiernorm.Model]) -> Photo:
    """Keypoints of a photo, described by every model and by SIFT."""
    image = read_grey(file)
    frames = detect(image, limit=limit)
    patches = cut_patches(image, frames)
    descriptors = {name: model.describe(patches) for name, model in models.items()}
    keypoints = [
        cv2.KeyPoint(x, y, 2 * sigma, np.rad2deg(angle))
        for x, y, sigma, angle in zip(frames.x, frames.y, frames.sigma, frames.angle, strict=True)
    ]
    described, descriptors["sift"] = cv2.SIFT_create().compute(image, keypoints)
    if len(described) != len(frames):
        raise RuntimeError(f"{file}: SIFT described {len(described)} of {len(frames)} keypoints")
    return Photo(frames, descriptors)


def match(method: str, a: Photo, b: Photo) -> Int64Array:
    """Pairs of keypoints ``(n, 2)`` by one of METHODS."""
    if method in MODELS or method in RATIO_TESTED:
        name = RATIO_TESTED.get(method, method)
        one, other = (photo.descriptors[name] for photo in (a, b))
        ratio = RATIO if method in RATIO_TESTED else None
        return hiernorm.match_descriptors(one, other, ratio=ratio).pairs
    one, other = (photo.descriptors["sift"] for photo in (a, b))
    if method == "sift cross-check":
        found = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(one, other)
    else:
        nearest = cv2.BFMatcher(cv2.NORM_L2).knnMatch(one, other, k=2)
        found = [m for m, n in nearest if m.distance <= 0.8 * n.distance]
    return np.array([(m.queryIdx, m.trainIdx) for m in found], np.int64).reshape(-1, 2)


def read_tracks(archive: Path) -> dict[int, dict[int, Float64Array]]:
    """Per photo: the place of each 3-D point that it sees."""
    scene = PhotoTour.open(archive)
    interest = np.loadtxt(
        scene_lines(archive, "interest.txt"), usecols=(0, 1, 2), ndmin=2, dtype=np.float64
    )
    tracks: dict[int, dict[int, Float64Array]] = {}
    for point, (photo, x, y) in zip(scene.points, interest, strict=True):
        tracks.setdefault(int(photo), {})[int(point)] = np.array([x, y])
    return tracks


def scene_lines(archive: Path, name: str) -> list[str]:
    """The lines of a text file in a zip."""
    with zipfile.ZipFile(archive) as file:
        return file.read(name).decode().splitlines()


def choose_pairs(
    tracks: dict[int, dict[int, Float64Array]], count: int
) -> list[tuple[int, int, str]]:
    """``count`` pairs, evenly from the fewest common tracks to the most, with their difficulty."""
    shared = sorted(
        (len(tracks[a].keys() & tracks[b].keys()), a, b) for a, b in combinations(sorted(tracks), 2)
    )
    usable = [entry for entry in shared if entry[0] >= LEAST_TRACKS]
    places = np.linspace(0, len(usable) - 1, count).astype(int)
    names = np.repeat(("hard", "medium", "easy"), -(-count // 3))
    return [(*usable[place][1:], str(name)) for place, name in zip(places, names, strict=False)]


def distances(
    geometry: str, matrix: Float64Array, a: Float64Array, b: Float64Array
) -> Float64Array:
    """Pixels by which places ``(n, 2)`` of two photos miss a geometry."""
    if len(a) == 0:
        return np.empty(0)
    if geometry == "fundamental":
        return epipolar_distances(matrix, a, b)
    moved: Float64Array = cv2.perspectiveTransform(a[:, None], matrix)[:, 0]
    return np.asarray(np.linalg.norm(moved - b, axis=1))


def find_truth(a: Float64Array, b: Float64Array) -> Truth | None:
    """The geometry that the tracks ``(n, 2)`` of a pair determine, if any."""
    plane = estimate_geometry(a, b, geometry="homography", threshold=TOLERANCE).matrix
    if plane is not None and (distances("homography", plane, a, b) <= TOLERANCE).mean() >= PLANAR:
        return Truth("homography", plane, (a, b))
    cv2.setRNGSeed(0)
    matrix, _ = cv2.findFundamentalMat(a, b, cv2.FM_LMEDS)
    if matrix is None or matrix.shape != (3, 3):
        return None
    return Truth("fundamental", matrix, (a, b))


def assess(method: str, a: Photo, b: Photo, truth: Truth) -> dict[str, Any]:
    """Match one pair by one method and compare with the tracks."""
    start = time.perf_counter()
    pairs = match(method, a, b)
    seconds = time.perf_counter() - start
    places = a.frames.centres[pairs[:, 0]], b.frames.centres[pairs[:, 1]]
    found = estimate_geometry(*places, geometry=truth.geometry)
    correct = distances(truth.geometry, truth.matrix, *places) <= TOLERANCE
    good = 0.0
    if found.matrix is not None:
        off = distances(truth.geometry, found.matrix, *truth.tracks)
        good = float((off <= TOLERANCE).mean())
    correct_inliers = int((correct & found.inliers).sum())
    return {
        "method": method,
        "matches": len(pairs),
        "correct_matches": int(correct.sum()),
        "inliers": found.count,
        "correct_inliers": correct_inliers,
        "tracks_explained": good,
        "success": good >= 0.5 and correct_inliers >= LEAST_CORRECT,
        "match_seconds": seconds,
    }


def study(data: Path, scene: str, count: int, photos: int, limit: int) -> list[dict[str, Any]]:
    """Pairs among some photos of a scene, evenly chosen, by all methods."""
    tracks = read_tracks(data / f"{scene}.zip")
    seen = sorted(tracks)
    chosen = np.unique(np.linspace(0, len(seen) - 1, photos).astype(int))
    tracks = {seen[place]: tracks[seen[place]] for place in chosen}
    files = list_photos(data / "photos" / scene)
    models = {name: hiernorm.load_model(name) for name in MODELS}
    known: dict[int, Photo] = {}
    rows = []
    for number, (a, b, difficulty) in enumerate(choose_pairs(tracks, count)):
        click.echo(f"{scene} {number + 1} of {count}", err=True)
        for photo in (a, b):
            if photo not in known:
                known[photo] = describe(files[photo], limit, models)
        common = sorted(tracks[a].keys() & tracks[b].keys())
        truth = find_truth(*(np.array([tracks[photo][p] for p in common]) for photo in (a, b)))
        if truth is None:
            continue
        pair = {
            "scene": scene,
            "photos": [files[a].name, files[b].name],
            "difficulty": difficulty,
            "tracks": len(common),
            "geometry": truth.geometry,
        }
        rows += [{**pair, **assess(method, known[a], known[b], truth)} for method in METHODS]
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means per scene, geometry, difficulty and method."""
    summary: list[dict[str, Any]] = []
    kinds = {
        "scene": (*SCENES, "all"),
        "geometry": ("homography", "fundamental", "all"),
        "difficulty": ("easy", "medium", "hard", "all"),
        "method": METHODS,
    }
    for values in product(*kinds.values()):
        kind = dict(zip(kinds, values, strict=True))
        of = [row for row in rows if all(v in (row[k], "all") for k, v in kind.items())]
        if of:
            names = ("matches", "correct_matches", "inliers", "correct_inliers")
            means = {name: float(np.mean([row[name] for row in of])) for name in names}
            success = float(np.mean([row["success"] for row in of]))
            counts = {"pairs": len(of), "success_rate": success}
            summary.append({**kind, **counts, **means})
    return summary


def draw(summary: list[dict[str, Any]], file: Path) -> None:
    """Bars: success rate and correct inliers per difficulty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    groups = ("easy", "medium", "hard", "all")
    for panel, key, label in zip(
        axes, ("success_rate", "correct_inliers"), ("success rate", "correct inliers"), strict=True
    ):
        for number, method in enumerate(METHODS):
            values = [
                row[key]
                for group in groups
                for row in summary
                if (row["scene"], row["geometry"]) == ("all", "all")
                and (row["difficulty"], row["method"]) == (group, method)
            ]
            place = 0.11 * (number - (len(METHODS) - 1) / 2)
            panel.bar(np.arange(len(values)) + place, values, 0.1, label=method)
        panel.set_xticks(range(len(groups)), groups)
        panel.set_title(label)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(0, 1)
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=130)


@click.command("photos.pairs", cls=Experiment)
@click.option("--data", type=EXISTING_FOLDER, help="Has <scene>.zip and photos/<scene>/.")
@click.option("--pairs", "count", default=36, show_default=True, help="Pairs of each scene.")
@click.option("--photos", default=20, show_default=True, help="Photos of each scene, at most.")
@click.option("--keypoints", default=1000, show_default=True, help="Keypoints of each photo.")
@click.option("--render", is_flag=True, help="Draw the picture of --out again, no more.")
@seed_option
@smoke_option
@out_option
def main(
    data: Path | None,
    count: int,
    photos: int,
    keypoints: int,
    render: bool,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Match pairs of photos by our descriptors and by SIFT; compare with the tracks."""
    folder = results_folder("photos", out, smoke)
    file = folder / "pairs.json"
    if not render:
        if data is None:
            raise click.UsageError("give --data, or --render")
        if smoke:
            count, photos, keypoints = 2, 3, 200
        recorder = Recorder("photos.pairs", seed)
        rows = [row for scene in SCENES for row in study(data, scene, count, photos, keypoints)]
        sizes = {"keypoints": keypoints, "photos": photos}
        recorder.write(file, {**sizes, "summary": summarise(rows), "pairs": rows})
    summary = read_record(file).result["summary"]
    draw(summary, folder / "pairs.png")
    for row in summary:
        if row["scene"] == row["geometry"] == "all":
            click.echo(
                f"{row['difficulty']:>7} {row['method']:>17} {row['pairs']:>3} pairs, "
                f"success {row['success_rate']:.0%}, correct inliers {row['correct_inliers']:.0f}"
            )


if __name__ == "__main__":
    main()

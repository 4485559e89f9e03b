"""How well photos are matched: our descriptors and OpenCV's SIFT at the same keypoints.

    python benchmarks/photo_pairs.py --data SCENES --out results/photos

Pairs of photos of a scene with tracks: the scene's archive (PhotoTour) says which patches show the
same 3-D point, and where in which photo. The tracks that both photos of a pair see give its true
geometry: a homography (MAGSAC) where one explains at least four fifths of them, so that what is
seen is a plane; else a fundamental matrix (LMedS). A match is correct if it lies within 3 pixels of
the place, or of its epipolar lines, by that matrix. A pair is a success if the matrix of the same
kind that MAGSAC estimates from a method's matches has at least half of the tracks within 3 pixels,
and at least 15 inliers are correct. Pairs are chosen evenly from the fewest common tracks to the
most: the third with the fewest is "hard", the next "medium", the rest "easy".

All methods have the same keypoints and mutual nearest neighbours; SIFT is matched by OpenCV's
BFMatcher, once with cross-check and once with Lowe's ratio test of 0.8. The tracks were mostly
found by SIFT, which favours it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import hiernorm
from hiernorm.bench.machine import describe_machine
from hiernorm.learn import PhotoTour
from hiernorm.vision import Frames, agree, detect, list_photos, read_grey
from hiernorm.vision.geometry import epipolar_distances
from hiernorm.vision.pairing import places_of
from hiernorm.vision.patches import cut_patches

SCENES = ("fox", "monstree")
MODELS = ("hardnet", "hn16", "hn8")
METHODS = (*MODELS, "sift cross-check", "sift ratio 0.8")
TOLERANCE = 3.0
PLANAR = 0.8
LEAST_TRACKS = 16
LEAST_CORRECT = 15


@dataclass(frozen=True)
class Truth:
    """The geometry of a pair by its tracks: what kind, the matrix, the tracks ``(n, 2)`` each."""

    geometry: str
    matrix: np.ndarray
    tracks: tuple[np.ndarray, np.ndarray]


@dataclass
class Photo:
    """One photo: its keypoints and each method's descriptors."""

    frames: Frames
    descriptors: dict[str, np.ndarray]


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


def match(method: str, a: Photo, b: Photo) -> np.ndarray:
    """Pairs of keypoints ``(n, 2)`` by one of METHODS."""
    if method in MODELS:
        one, other = (photo.descriptors[method] for photo in (a, b))
        return hiernorm.match_descriptors(one, other).pairs
    one, other = (photo.descriptors["sift"] for photo in (a, b))
    if method == "sift cross-check":
        found = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(one, other)
    else:
        nearest = cv2.BFMatcher(cv2.NORM_L2).knnMatch(one, other, k=2)
        found = [m for m, n in nearest if m.distance <= 0.8 * n.distance]
    return np.array([(m.queryIdx, m.trainIdx) for m in found], np.int64).reshape(-1, 2)


def read_tracks(archive: Path) -> dict[int, dict[int, np.ndarray]]:
    """Per photo: the place of each 3-D point that it sees."""
    scene = PhotoTour.open(archive)
    interest = np.loadtxt(
        scene_lines(archive, "interest.txt"), usecols=(0, 1, 2), ndmin=2, dtype=np.float64
    )
    tracks: dict[int, dict[int, np.ndarray]] = {}
    for point, (photo, x, y) in zip(scene.points, interest, strict=True):
        tracks.setdefault(int(photo), {})[int(point)] = np.array([x, y])
    return tracks


def scene_lines(archive: Path, name: str) -> list[str]:
    """The lines of a text file in a zip."""
    import zipfile

    with zipfile.ZipFile(archive) as file:
        return file.read(name).decode().splitlines()


def choose_pairs(
    tracks: dict[int, dict[int, np.ndarray]], count: int
) -> list[tuple[int, int, str]]:
    """``count`` pairs, evenly from the fewest common tracks to the most, with their difficulty."""
    shared = sorted(
        (len(tracks[a].keys() & tracks[b].keys()), a, b) for a, b in combinations(sorted(tracks), 2)
    )
    usable = [entry for entry in shared if entry[0] >= LEAST_TRACKS]
    places = np.linspace(0, len(usable) - 1, count).astype(int)
    names = np.repeat(("hard", "medium", "easy"), -(-count // 3))
    return [(*usable[place][1:], str(name)) for place, name in zip(places, names, strict=False)]


def distances(geometry: str, matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pixels by which places ``(n, 2)`` of two photos miss a geometry."""
    if len(a) == 0:
        return np.empty(0)
    if geometry == "fundamental":
        return epipolar_distances(matrix, a, b)
    return np.linalg.norm(cv2.perspectiveTransform(a[:, None], matrix)[:, 0] - b, axis=1)


def find_truth(a: np.ndarray, b: np.ndarray) -> Truth | None:
    """The geometry that the tracks ``(n, 2)`` of a pair determine, if any."""
    plane = agree(a, b, geometry="homography", threshold=TOLERANCE).matrix
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
    places = places_of(a.frames)[pairs[:, 0]], places_of(b.frames)[pairs[:, 1]]
    found = agree(*places, geometry=truth.geometry)
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
        print(f"{scene} {number + 1} of {count}", file=sys.stderr)
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
    summary = []
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
            summary.append({**kind, "pairs": len(of), "success_rate": success, **means})
    return summary


def draw(summary: list[dict[str, Any]], file: Path) -> None:
    """Bars: success rate and correct inliers per difficulty."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
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
            panel.bar(np.arange(len(values)) + 0.16 * (number - 2), values, 0.15, label=method)
        panel.set_xticks(range(len(groups)), groups)
        panel.set_title(label)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(0, 1)
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=130)


def main() -> None:
    """Read the command line, study, write pairs.json and pairs.png."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="<scene>.zip and photos/<scene>/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=36, help="of each scene")
    parser.add_argument("--photos", type=int, default=20, help="of each scene, at most")
    parser.add_argument("--keypoints", type=int, default=1000)
    options = parser.parse_args()
    rows = []
    for scene in SCENES:
        rows += study(options.data, scene, options.pairs, options.photos, options.keypoints)
    report = {
        "machine": describe_machine(),
        "keypoints": options.keypoints,
        "photos": options.photos,
        "summary": summarise(rows),
        "pairs": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "pairs.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    draw(json.loads(file.read_text(encoding="utf-8"))["summary"], options.out / "pairs.png")
    for row in report["summary"]:
        if row["scene"] == row["geometry"] == "all":
            print(
                f"{row['difficulty']:>7} {row['method']:>17} {row['pairs']:>3} pairs, "
                f"success {row['success_rate']:.0%}, correct inliers {row['correct_inliers']:.0f}"
            )


if __name__ == "__main__":
    main()

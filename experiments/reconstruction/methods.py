"""The ways to match that are compared, each on a database of its own."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from hiernorm.adapters.colmap import ColmapDatabase, map_database, match_database, verify_pairs
from hiernorm.adapters.colmap.database import Pair
from hiernorm.adapters.colmap.mapping import import_pycolmap, quiet_colmap
from hiernorm.adapters.colmap.pairing import write_pairs

BRUTE = "colmap brute force"
METHODS = {
    "colmap": "COLMAP default",
    BRUTE: "COLMAP brute force",
    "hiernorm": "hiernorm, SIFT",
    "hiernorm hardnet": "hiernorm, `hardnet`",
    "hiernorm hn16": "hiernorm, `hn16`",
}


def match_pairs_by(
    method: str, source: Path, database: Path, pairs: list[Pair], threads: int
) -> float:
    """Match pairs in a fresh copy of ``source``; returns the seconds, without verification."""
    shutil.copy(source, database)
    if method.startswith("hiernorm"):
        start = time.perf_counter()
        match_database(database, pairs, threads=threads)
        return time.perf_counter() - start
    pycolmap = import_pycolmap()
    options = pycolmap.FeatureMatchingOptions()
    options.num_threads = threads
    options.skip_geometric_verification = True
    options.sift.cpu_brute_force_matcher = method == BRUTE
    pairing = pycolmap.ImportedPairingOptions()
    file = database.with_suffix(".txt")
    with ColmapDatabase(database) as opened:
        write_pairs(file, pairs, opened.images())
    pairing.match_list_path = str(file)
    with quiet_colmap(pycolmap):
        start = time.perf_counter()
        pycolmap.match_image_pairs(str(database), matching_options=options, pairing_options=pairing)
        return time.perf_counter() - start


def map_matches(
    database: Path, photos: Path, out: Path, pairs: list[Pair], seed: int
) -> dict[str, Any]:
    """Verify and map by COLMAP; what the largest model is like."""
    verified = verify_pairs(database, pairs)
    pycolmap = import_pycolmap()
    with pycolmap.Database.open(str(database)) as opened:
        inliers = int(opened.num_inlier_matches())
    options = pycolmap.IncrementalPipelineOptions()
    options.random_seed = seed
    options.min_model_size = 3
    models = map_database(database, photos, out, options)
    facts: dict[str, Any] = {"verified_pairs": verified, "inliers": inliers, "models": len(models)}
    if not models:
        return {**facts, "registered": 0, "points": 0}
    best = models[0]
    return {
        **facts,
        "registered": int(best.num_reg_images()),
        "points": int(best.num_points3D()),
        "observations": int(best.compute_num_observations()),
        "track_length": float(best.compute_mean_track_length()),
        "error_pixels": float(best.compute_mean_reprojection_error()),
    }

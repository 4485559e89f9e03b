"""The ways to match that are compared, each on a database of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hiernorm.adapters.colmap import ColmapDatabase, map_database, match_database, verify_pairs
from hiernorm.adapters.colmap.mapping import import_pycolmap, quiet_colmap
from hiernorm.adapters.colmap.pairing import write_pairs
from hiernorm.adapters.colmap.records import Pair

BRUTE = "colmap brute force"
METHODS = {
    "colmap": "COLMAP default",
    BRUTE: "COLMAP brute force",
    "hiernorm": "hiernorm, SIFT",
    "hiernorm hardnet": "hiernorm, `hardnet`",
    "hiernorm hn16": "hiernorm, `hn16`",
}


class Cost(NamedTuple):
    """Wall time, and the processor time of all threads, which the load of others hardly changes."""

    seconds: float
    processor_seconds: float


def match_pairs_by(
    method: str, source: Path, database: Path, pairs: list[Pair], threads: int
) -> Cost:
    """Match pairs in a fresh copy of ``source``; returns what it takes, without verification."""
    for name in ("-wal", "-shm"):  # of a former copy, which SQLite would take for its own
        database.with_name(database.name + name).unlink(missing_ok=True)
    shutil.copy(source, database)
    if method.startswith("hiernorm"):
        return _cost(lambda: match_database(database, pairs, threads=threads))
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
        return _cost(
            lambda: pycolmap.match_image_pairs(
                str(database), matching_options=options, pairing_options=pairing
            )
        )


def _cost(work: Callable[[], object]) -> Cost:
    start, busy = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - start, time.process_time() - busy)


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

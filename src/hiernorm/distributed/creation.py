"""A new sharded database: its folder, its shards, its manifest."""

from __future__ import annotations

from pathlib import Path

from hiernorm.arrays import as_count
from hiernorm.distributed.manifest import MANIFEST, ShardsManifest, pin_of, shard_name
from hiernorm.distributed.staging import STAGING
from hiernorm.settings import Metric
from hiernorm.storage.lock import LOCK, WriterLock
from hiernorm.storage.manifest import MANIFEST as SHARD_MANIFEST
from hiernorm.storage.manifest import Manifest, Parameters, read_manifest
from hiernorm.storage.writer import create_folder

MAX_SHARDS = 99_999


def create_shards(
    folder: Path,
    dim: int,
    shards: int,
    major: int | None,
    alpha: float | None,
    metric: Metric,
    string_keys: bool = False,
) -> ShardsManifest:
    """Make an empty database; also in a folder where an interrupted call left files."""
    count = as_count("shards", shards, most=MAX_SHARDS)
    share = None if alpha is None else float(alpha)
    parameters = Parameters(dim, major, share, metric, string_keys)
    parameters.settings()
    folder.mkdir(parents=True, exist_ok=True)
    with WriterLock(folder, 0.0):
        if (folder / MANIFEST).exists():
            raise FileExistsError(f"{folder} is a database already: choose another folder")
        if (folder / STAGING).exists():
            raise FileExistsError(
                f"{folder} has a build that was interrupted: continue it, or choose another folder"
            )
        manifests = prepare_folders(folder, parameters, count)
        if any(manifest.generation for manifest in manifests):
            raise FileExistsError(f"{folder} has shards with entries: choose another folder")
        pins = tuple(pin_of(manifest) for manifest in manifests)
        created = ShardsManifest(parameters, pins, columns=manifests[0].columns)
        created.write(folder)
    return created


def prepare_folders(folder: Path, parameters: Parameters, shards: int) -> list[Manifest]:
    """Make the folders of shards that do not exist yet; returns the manifests of all shards."""
    names = [shard_name(shard) for shard in range(shards)]
    allowed = {LOCK, STAGING, f"{MANIFEST}.new", *names}
    strangers = sorted(entry.name for entry in folder.iterdir() if entry.name not in allowed)
    if strangers:
        raise FileExistsError(f"{folder} is not empty ({strangers[0]}): choose another folder")
    manifests = []
    for name in names:
        if not (folder / name / SHARD_MANIFEST).exists():
            create_folder(folder / name, **vars(parameters))
        manifests.append(read_manifest(folder / name))
        if manifests[-1].parameters != parameters:
            raise FileExistsError(
                f"{folder / name} is a database of other parameters: choose another folder"
            )
    return manifests

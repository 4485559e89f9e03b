"""The manifest of a sharded database: the generation of each shard that belongs to it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hiernorm import _files
from hiernorm.distributed.placement import NAME
from hiernorm.payload.columns import Column
from hiernorm.storage.errors import DamagedError, FormatVersionError, NotADatabaseError
from hiernorm.storage.manifest import Manifest, Parameters, digest_members, json_bytes

MANIFEST = "shards.json"
FORMAT = "hiernorm sharded database"
VERSION = 1
PAYLOAD_VERSION = 2
"""The version of a manifest that knows of payload or string keys; all others stay at 1."""


@dataclass(frozen=True)
class Pin:
    """One generation of one shard: its number, the digest of its manifest, its entries."""

    generation: int
    sha256: str
    entries: int


@dataclass(frozen=True)
class ShardsManifest:
    """One generation of a sharded database."""

    parameters: Parameters
    pins: tuple[Pin, ...]
    generation: int = 0
    next_id: int = 0
    columns: tuple[Column, ...] = ()

    @property
    def version(self) -> int:
        """The version of the format that describes this generation."""
        payload = self.columns or self.parameters.string_keys
        return PAYLOAD_VERSION if payload else VERSION

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self.pins)

    @property
    def entries(self) -> int:
        """The number of entries in all shards."""
        return sum(pin.entries for pin in self.pins)

    def write(self, folder: Path) -> None:
        """Make this the generation that the next reader opens; this commits a change."""
        members = {"format": FORMAT, "version": self.version, "placement": NAME, **asdict(self)}
        members["parameters"] = self.parameters.members()
        if self.version == VERSION:
            del members["columns"]
        members["sha256"] = digest_members(json.loads(json.dumps(members)))
        _files.replace_file(folder / MANIFEST, json_bytes(members))


def pin_of(manifest: Manifest) -> Pin:
    """The pin that names the generation of a shard's manifest."""
    return Pin(
        manifest.generation, manifest.digest, sum(record.live for record in manifest.segments)
    )


def shard_name(shard: int) -> str:
    """The name of the folder of a shard."""
    return f"shard-{shard:05d}"


def parse_shards_manifest(data: bytes, where: str) -> ShardsManifest:
    """The manifest in ``data``, read from ``where``."""
    try:
        members: dict[str, Any] = json.loads(data.decode("utf-8"))
        known = members.get("format") == FORMAT
        as_written = json_bytes(members) == data
    except (ValueError, AttributeError, RecursionError):
        raise DamagedError(f"{where} is damaged (it is not JSON): restore it") from None
    if not known:
        raise NotADatabaseError(f"{where} is not the manifest of a sharded database")
    versions = (VERSION, PAYLOAD_VERSION)
    if members.get("version") not in versions or members.get("placement") != NAME:
        raise FormatVersionError(
            f"{where} has version {members.get('version')!r} and placement "
            f"{members.get('placement')!r}, this hiernorm reads {VERSION} or {PAYLOAD_VERSION} "
            f"and {NAME!r}: install the version of hiernorm that wrote it"
        )
    if members.pop("sha256", None) != digest_members(members):
        raise DamagedError(f"{where} is damaged (its digest does not match): restore it")
    if not as_written:
        raise DamagedError(f"{where} is damaged (not spelled as it was written): restore it")
    return ShardsManifest(
        Parameters(**members["parameters"]),
        tuple(Pin(**pin) for pin in members["pins"]),
        members["generation"],
        members["next_id"],
        tuple(Column(**column) for column in members.get("columns", ())),
    )

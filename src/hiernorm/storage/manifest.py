"""The manifest: the one file that says which files are the database, and of which generation."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hiernorm import _files
from hiernorm.settings import IndexSettings
from hiernorm.storage.errors import DamagedError, FormatVersionError, NotADatabaseError

MANIFEST = "manifest.json"
PREPARED = "manifest.json.prepared"
"""A generation that is written, but not yet the database: it waits for other databases."""
FORMAT = "hiernorm database"
VERSION = 1
MOST_BYTES = 1 << 26
CELLS: bool | None = None
"""Cells where they pay; tests have them everywhere."""
FILE_NAME = re.compile(r"(segment|live)-[0-9]{8,}-[0-9]{4,}\.safetensors")
SPILL_FILE = ("rows-", ".spool")
"""How the name of a file begins and ends that holds vectors on their way into a segment."""
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Parameters:
    """What a database was created with."""

    dim: int
    major: int | None
    alpha: float | None
    metric: str

    def settings(self, threads: int | None = None) -> IndexSettings:
        """The same, checked, as an index takes them."""
        return IndexSettings(
            self.dim, self.major, self.alpha, self.metric, "cascade", cells=CELLS, threads=threads
        )


@dataclass(frozen=True)
class FileRecord:
    """A file of the database: its name, its size, the digest of its header."""

    file: str
    bytes: int
    header_sha256: str


@dataclass(frozen=True)
class SegmentRecord:
    """A segment and, if some of its entries are gone, the file that says which are left."""

    data: FileRecord
    entries: int
    live: int
    tombstones: FileRecord | None = None


@dataclass(frozen=True)
class Manifest:
    """One generation of a database."""

    parameters: Parameters
    generation: int = 0
    next_id: int = 0
    segments: tuple[SegmentRecord, ...] = field(default=())

    def file_names(self) -> set[str]:
        """All files that this generation consists of."""
        records = [record.data for record in self.segments]
        records += [record.tombstones for record in self.segments if record.tombstones]
        return {record.file for record in records}

    def to_bytes(self) -> bytes:
        """The manifest as it is written; its last member is the digest of all others."""
        members = {"format": FORMAT, "version": VERSION, **asdict(self)}
        members["sha256"] = digest_members(members)
        return (json.dumps(members, indent=1) + "\n").encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes as they are written."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def write(self, folder: Path, name: str = MANIFEST) -> None:
        """Make this the generation that the next reader opens; or only prepare it."""
        _files.replace_file(folder / name, self.to_bytes())


def is_ours(name: str) -> bool:
    """Whether a file of this name in the folder is ours to remove: others never are."""
    begin, end = SPILL_FILE
    spool = name.startswith(begin) and name.endswith(end)
    waiting = name in (f"{MANIFEST}.new", PREPARED, f"{PREPARED}.new")
    return spool or waiting or FILE_NAME.fullmatch(name) is not None


def read_manifest(folder: Path, name: str = MANIFEST) -> Manifest:
    """The manifest of a database; or the one that was prepared.

    Raises
    ------
    NotADatabaseError, FormatVersionError, DamagedError
        If there is none, it is of another version, or it is not as it was written.
    """
    path = folder / name
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        what = f"has no {name}" if folder.is_dir() else "does not exist"
        raise NotADatabaseError(
            f"{folder} {what}: not a hiernorm database; Database.create makes one"
        ) from None
    except NotADirectoryError:
        raise NotADatabaseError(f"{folder} is a file, a hiernorm database is a folder") from None
    return parse_manifest(data, path)


def parse_manifest(data: bytes, path: Path) -> Manifest:
    """The manifest in ``data``, read from ``path``."""
    try:
        members = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedError(_damage(path, "it is not JSON")) from None
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise NotADatabaseError(f"{path} is not the manifest of a hiernorm database")
    if members.get("version") != VERSION:
        raise FormatVersionError(
            f"{path.parent} has format version {members.get('version')!r}, this hiernorm reads "
            f"version {VERSION}: install the version of hiernorm that wrote it"
        )
    if members.pop("sha256", None) != digest_members(members):
        raise DamagedError(_damage(path, "its digest does not match"))
    try:
        return _build(members)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(_damage(path, str(error))) from None


def _damage(path: Path, what: str) -> str:
    return f"{path} is damaged ({what}): restore the database from a snapshot"


def digest_members(members: dict[str, Any]) -> str:
    """SHA-256 of JSON members, however they are ordered and indented."""
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _build(members: dict[str, Any]) -> Manifest:
    parameters = Parameters(**members["parameters"])
    parameters.settings()
    segments = tuple(_build_segment(record) for record in members["segments"])
    return Manifest(
        parameters,
        _count(members["generation"]),
        _integer(members["next_id"]),
        segments,
    )


def _build_segment(record: dict[str, Any]) -> SegmentRecord:
    tombstones = record["tombstones"]
    built = SegmentRecord(
        _build_file(record["data"]),
        _count(record["entries"]),
        _count(record["live"]),
        None if tombstones is None else _build_file(tombstones),
    )
    if not 1 <= built.live <= built.entries:
        raise ValueError(f"{built.live} live entries of {built.entries}")
    return built


def _build_file(record: dict[str, Any]) -> FileRecord:
    built = FileRecord(record["file"], _count(record["bytes"]), record["header_sha256"])
    if not FILE_NAME.fullmatch(built.file) or not DIGEST.fullmatch(built.header_sha256):
        raise ValueError(f"{built.file!r} is no file of a database")
    return built


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no integer")
    return value


def _count(value: object) -> int:
    if _integer(value) < 0:
        raise ValueError(f"{value!r} is no count")
    return _integer(value)

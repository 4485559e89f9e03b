"""The manifest: the file that lists the files of the database and names its generation."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hiernorm import _files
from hiernorm._regular_files import NotRegularError, read_regular
from hiernorm.payload.columns import Column
from hiernorm.settings import IndexSettings, Metric
from hiernorm.storage.errors import DamagedError, FormatVersionError, NotADatabaseError

MANIFEST = "manifest.json"
PREPARED = "manifest.json.prepared"
"""A generation that is written, but not yet published: it waits for other shards."""
FORMAT = "hiernorm database"
VERSION = 1
PAYLOAD_VERSION = 2
"""The version of a manifest that knows of payload or string keys; all others stay at 1."""
MAX_BYTES = 1 << 26
FILE_NAME = re.compile(r"(segment|live|payload)-[0-9]{8,}-[0-9]{4,}\.safetensors")
SPILL_FILE = ("rows-", ".spool")
"""Prefix and suffix of the files of a spill buffer."""
DIGEST = re.compile(r"[0-9a-f]{64}")
IDENTITY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Parameters:
    """The parameters of a database, fixed when it is created."""

    dim: int
    major: int | None
    alpha: float | None
    metric: Metric
    string_keys: bool = False

    def members(self) -> dict[str, Any]:
        """The parameters as JSON; ``string_keys`` only if it is true."""
        members = asdict(self)
        if not self.string_keys:
            del members["string_keys"]
        return members

    def settings(self, threads: int | None = None) -> IndexSettings:
        """The settings of an index with these parameters, checked."""
        return IndexSettings(
            self.dim, self.major, self.alpha, self.metric, "cascade", cells=None, threads=threads
        )


@dataclass(frozen=True)
class FileRecord:
    """A file of the database: its name, its size, the digest of its header."""

    file: str
    bytes: int
    header_sha256: str


@dataclass(frozen=True)
class SegmentRecord:
    """A segment and, if it has them, the files of its tombstones and of its payload."""

    data: FileRecord
    entries: int
    live: int
    tombstones: FileRecord | None = None
    payload: FileRecord | None = None

    def files(self) -> list[FileRecord]:
        """All files of the segment."""
        return [file for file in (self.data, self.tombstones, self.payload) if file is not None]


@dataclass(frozen=True)
class Manifest:
    """One generation of a database.

    ``identity`` is drawn when the database is made, and kept by changes and copies. Databases of
    earlier versions have none until their next change.
    """

    parameters: Parameters
    generation: int = 0
    next_id: int = 0
    segments: tuple[SegmentRecord, ...] = field(default=())
    columns: tuple[Column, ...] = field(default=())
    identity: str | None = None

    def files(self) -> list[FileRecord]:
        """All files that this generation consists of."""
        return [file for record in self.segments for file in record.files()]

    def file_names(self) -> set[str]:
        """The names of all files."""
        return {record.file for record in self.files()}

    @property
    def version(self) -> int:
        """The version of the format that describes this generation."""
        payload = self.columns or self.parameters.string_keys
        return PAYLOAD_VERSION if payload else VERSION

    def to_bytes(self) -> bytes:
        """The contents of the file; its last member is the digest of all others."""
        members = {"format": FORMAT, "version": self.version, **asdict(self)}
        members["parameters"] = self.parameters.members()
        if self.identity is None:
            del members["identity"]
        if self.version == VERSION:
            del members["columns"]
            for record in members["segments"]:
                del record["payload"]
        members["sha256"] = digest_members(members)
        return json_bytes(members)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents of the file: it identifies a generation of a database.

        It covers the digests of all headers, and they those of all tensors.
        """
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def write(self, folder: Path, name: str = MANIFEST) -> None:
        """Write the file; under its usual name this publishes the generation."""
        _files.replace_file(folder / name, self.to_bytes())


def new_identity() -> str:
    """An identity that no other database has: 32 hexadecimal digits, random."""
    return uuid.uuid4().hex


def is_ours(name: str) -> bool:
    """Whether a database writes files of this name; other files are never removed."""
    prefix, suffix = SPILL_FILE
    spilled = name.startswith(prefix) and name.endswith(suffix)
    unpublished = name in (f"{MANIFEST}.new", PREPARED, f"{PREPARED}.new")
    return spilled or unpublished or FILE_NAME.fullmatch(name) is not None


def read_manifest(folder: Path, name: str = MANIFEST) -> Manifest:
    """Read the manifest of a database, or the prepared one.

    Raises
    ------
    NotADatabaseError, FormatVersionError, DamagedError
        If there is no manifest, it has another version, or it is damaged.
    """
    path = folder / name
    try:
        data = read_regular(path, MAX_BYTES + 1)
    except FileNotFoundError:
        what = f"has no {name}" if folder.is_dir() else "does not exist"
        raise NotADatabaseError(
            f"{folder} {what}: not a hiernorm database; Database.create makes one"
        ) from None
    except NotRegularError:
        raise DamagedError(_damage(path, "it is not a regular file")) from None
    except NotADirectoryError:
        raise NotADatabaseError(f"{folder} is a file, a hiernorm database is a folder") from None
    return parse_manifest(data, path)


def parse_manifest(data: bytes, path: Path) -> Manifest:
    """The manifest in ``data``, read from ``path``."""
    try:
        members = json.loads(data.decode("utf-8"))
        as_written = json_bytes(members) == data
    except (ValueError, RecursionError):
        raise DamagedError(_damage(path, "it is not JSON")) from None
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise NotADatabaseError(f"{path} is not the manifest of a hiernorm database")
    if members.get("version") not in (VERSION, PAYLOAD_VERSION):
        raise FormatVersionError(
            f"{path.parent} has format version {members.get('version')!r}, this hiernorm reads "
            f"versions {VERSION} and {PAYLOAD_VERSION}: install the version of hiernorm that "
            "wrote it"
        )
    if members.pop("sha256", None) != digest_members(members):
        raise DamagedError(_damage(path, "its digest does not match"))
    if not as_written:  # the digest does not cover blanks and the spelling of numbers
        raise DamagedError(_damage(path, "it is not spelled as it was written"))
    try:
        return _build(members)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(_damage(path, str(error))) from None


def _damage(path: Path, what: str) -> str:
    return f"{path} is damaged ({what}): restore the database from a snapshot"


def json_bytes(members: dict[str, Any]) -> bytes:
    """The one spelling of a manifest."""
    return (json.dumps(members, indent=1) + "\n").encode()


def digest_members(members: dict[str, Any]) -> str:
    """SHA-256 of JSON members, independent of their order and indentation."""
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
        tuple(Column(**column) for column in members.get("columns", ())),
        None if "identity" not in members else _build_identity(members["identity"]),
    )


def _build_identity(value: object) -> str:
    if not isinstance(value, str) or not IDENTITY.fullmatch(value):
        raise ValueError(f"{value!r} is no identity")
    return value


def _build_segment(record: dict[str, Any]) -> SegmentRecord:
    tombstones, payload = record["tombstones"], record.get("payload")
    built = SegmentRecord(
        _build_file(record["data"]),
        _count(record["entries"]),
        _count(record["live"]),
        None if tombstones is None else _build_file(tombstones),
        None if payload is None else _build_file(payload),
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

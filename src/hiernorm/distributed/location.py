"""Locations of sharded databases: a folder that all nodes see, or a URI that each node copies."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hiernorm import _files
from hiernorm._regular_files import open_regular
from hiernorm.distributed.manifest import MANIFEST as SHARDS_MANIFEST
from hiernorm.distributed.manifest import ShardsManifest, parse_shards_manifest
from hiernorm.extras import import_extra
from hiernorm.storage.block_checks import require_intact_file
from hiernorm.storage.checksums import CHECKSUMS
from hiernorm.storage.errors import DamagedError, DatabaseError, NotADatabaseError
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.manifest import MANIFEST, PREPARED, FileRecord, Manifest, parse_manifest
from hiernorm.storage.segment import map_file
from hiernorm.storage.transaction import remove_files_but

COPY_TIMEOUT = 3600.0
"""Seconds that an actor waits while another actor of its node copies the same shard."""


COPY_ATTEMPTS = 2
COPY_BYTES = 1 << 22
"""Bytes that are copied at a time."""


class Location:
    """A folder of files, by path or by URI (``s3://...``, read with pyarrow)."""

    def __init__(self, path_or_uri: str | os.PathLike[str]) -> None:
        text = os.fspath(path_or_uri)
        parts = urlsplit(text)
        self.name = text
        self._remote: Any = None
        if parts.scheme == "file":
            self._path = Path(unquote(parts.path))
        elif "://" in text:
            arrow = import_extra("pyarrow.fs", extra="ray")
            self._remote, folder = arrow.FileSystem.from_uri(text)
            self._path = Path(folder)
        else:
            self._path = Path(text).absolute()
            self.name = str(self._path)

    @property
    def folder(self) -> Path:
        """The folder; DatabaseError if the location is read-only."""
        if self._remote is not None:
            raise DatabaseError(
                f"{self.name} can be searched, not changed: change the database in a folder and "
                "copy it there"
            )
        return self._path

    @property
    def is_remote(self) -> bool:
        """Whether files must be copied before they can be mapped."""
        return self._remote is not None

    def read(self, name: str) -> bytes:
        """The contents of a file."""
        with self._open(name) as stream:
            data: bytes = stream.read()
        return data

    def copy(self, name: str, to: Path, most: int) -> None:
        """Copy a file to this machine, durably; a partial copy never has the name ``to``.

        Of a file of more than ``most`` bytes, only so many are copied: a device has no end.
        """
        with (
            _files.replacing(to, alone=True) as fresh,
            self._open(name) as stream,
            fresh.open("wb") as out,
        ):
            while most and (piece := stream.read(min(most, COPY_BYTES))):
                out.write(piece)
                most -= len(piece)

    def _open(self, name: str) -> Any:
        if self._remote is not None:
            return self._remote.open_input_stream((self._path / name).as_posix())
        return os.fdopen(open_regular(self._path / name), "rb")

    def read_manifest(self) -> ShardsManifest:
        """The newest manifest of the sharded database."""
        try:
            data = self.read(SHARDS_MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            raise NotADatabaseError(
                f"{self.name} has no {SHARDS_MANIFEST}: not a sharded database; "
                "ShardedDatabase.create makes one"
            ) from None
        return parse_shards_manifest(data, f"{self.name}/{SHARDS_MANIFEST}")


def copy_shard(
    location: Location, shard: str, sha256: str, local: Path, *, read_whole: bool = False
) -> Path:
    """Bring the copy of a shard on this machine to the generation of ``sha256``; its folder.

    Files never change, so only files that are missing or damaged are copied. A file that was copied
    is read whole and compared with its digests. One that is there already is compared in the same
    way to ``read_whole``, or if it has no checksums that a search would compare; otherwise by its
    size and header. If the generation no longer exists, the
    newest one is copied, and opening it raises StaleGenerationError.

    Raises
    ------
    DamagedError
        If a copy is wrong twice: then the original is.
    """
    folder = local / f"{hashlib.sha256(location.name.encode()).hexdigest()[:16]}-{shard}"
    folder.mkdir(parents=True, exist_ok=True)
    with WriterLock(folder, COPY_TIMEOUT):
        while True:
            manifest = _find_manifest(location, shard, sha256)
            try:
                for record in manifest.files():
                    if not _is_intact(folder, record, read_whole=read_whole):
                        _copy_checked(location, shard, record, folder)
            except FileNotFoundError:
                if _find_manifest(location, shard, sha256) == manifest:
                    raise
                continue
            break
        _files.replace_file(folder / MANIFEST, manifest.to_bytes())
        remove_files_but(folder, manifest.file_names())
    return folder


def _copy_checked(location: Location, shard: str, record: FileRecord, folder: Path) -> None:
    for _ in range(COPY_ATTEMPTS):
        location.copy(f"{shard}/{record.file}", folder / record.file, record.bytes)
        if _is_intact(folder, record, read_whole=True):
            return
    _files.remove_file(folder / record.file)
    raise DamagedError(
        f"{location.name}/{shard}/{record.file} is not what was written: restore it from a copy"
    )


def _is_intact(folder: Path, record: FileRecord, *, read_whole: bool) -> bool:
    try:
        file = map_file(folder, record)
        if read_whole or CHECKSUMS not in file.header.tensors:
            require_intact_file(file)
    except (FileNotFoundError, DamagedError):
        return False
    return True


def _find_manifest(location: Location, shard: str, sha256: str) -> Manifest:
    path = Path(location.name) / shard / MANIFEST
    newest = parse_manifest(location.read(f"{shard}/{MANIFEST}"), path)
    if newest.digest == sha256:
        return newest
    try:
        prepared = parse_manifest(location.read(f"{shard}/{PREPARED}"), path.with_name(PREPARED))
    except FileNotFoundError:
        return parse_manifest(location.read(f"{shard}/{MANIFEST}"), path)
    return prepared if prepared.digest == sha256 else newest

"""The download of official scenes: fetched by pooch, checked against digests, or not there."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from hiernorm.extras import import_extra
from hiernorm.learn.scenes.archives import ARCHIVES, Archive
from hiernorm.learn.scenes.transfer import OnBytes, Transfer

PINS = "SHA256SUMS"
"""Digests of archives without a published one, as of their first download; beside the data, in
the format that ``sha256sum --check`` reads."""


class DamagedArchiveError(RuntimeError):
    """An archive that is not, or no longer, what it should be."""


@dataclass(frozen=True)
class Downloaded:
    """An archive on disk.

    Attributes
    ----------
    file : Path
        The archive.
    digest : str
        What it was compared with, ``md5:...`` or ``sha256:...``.
    newly_pinned : bool
        No digest was known: this one was pinned now, and later downloads are compared with it.
    """

    file: Path
    digest: str
    newly_pinned: bool


def find_archive(scene: str) -> Archive:
    """The archive of a scene, or an error that lists the scenes."""
    if scene not in ARCHIVES:
        raise ValueError(f"no official scene {scene!r}: there are {', '.join(ARCHIVES)}")
    return ARCHIVES[scene]


def download(
    archive: Archive, folder: Path, on_bytes: OnBytes = lambda have, total: None
) -> Downloaded:
    """Fetch an archive into ``folder``, unless it is there and good.

    The archive appears under its name only when it is complete and has passed its checks. What has
    arrived of one that broke off stays as ``<scene>.zip.part`` for the next call.

    Raises
    ------
    TransferError
        The file cannot be had, or broke off.
    DamagedArchiveError
        What came is no zip of patches, or not the one that the digest says.
    """
    pooch = import_extra("pooch", "data")
    pooch.get_logger().setLevel("WARNING")
    folder = Path(folder)
    file = folder / f"{archive.scene}.zip"
    pinned = _read_pins(folder).get(file.name)
    known = archive.digest or pinned
    if known is None and file.exists():
        # Whoever put it there: from now on it counts.
        check_archive(file)
    else:
        transfer = Transfer(file.with_name(file.name + ".part"), on_bytes, check_archive)
        try:
            pooch.retrieve(
                archive.url,
                known_hash=known,
                fname=file.name,
                path=folder,
                downloader=transfer,
            )
        except ValueError as error:
            source = "published" if archive.digest else f"pinned in {folder / PINS}"
            raise DamagedArchiveError(
                f"{archive.url} is not the archive whose digest is {source}, and was not kept: "
                f"{error}"
            ) from error
    if known is not None:
        return Downloaded(file, known, newly_pinned=False)
    digest = f"sha256:{pooch.file_hash(str(file), alg='sha256')}"
    _write_pin(folder, file.name, digest)
    return Downloaded(file, digest, newly_pinned=True)


def check_archive(file: Path) -> None:
    """Read all of a scene's archive; raise DamagedArchiveError if it is short or corrupt."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()}
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise DamagedArchiveError(f"{file} is no zip, or a damaged one: {error}") from error
    if damaged is not None:
        raise DamagedArchiveError(f"{file} is damaged: its part {damaged} does not read back")
    if "info.txt" not in names or not any(re.fullmatch(r"patches\d+\.bmp", n) for n in names):
        raise DamagedArchiveError(
            f"{file} is no scene: expected patchesNNNN.bmp and info.txt, got {len(names)} files"
        )


def _read_pins(folder: Path) -> dict[str, str]:
    """File name -> digest."""
    file = folder / PINS
    if not file.exists():
        return {}
    pins = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        if match is None:
            raise ValueError(
                f"{file}, line {number}: expected a SHA-256 and a name, got {line[:80]!r}; "
                "mend or remove the line"
            )
        pins[match[2]] = f"sha256:{match[1]}"
    return pins


def _write_pin(folder: Path, name: str, digest: str) -> None:
    """Add a digest to the list; the list is replaced in one step."""
    pins = {**_read_pins(folder), name: digest}
    lines = [f"{pin.removeprefix('sha256:')}  {name}\n" for name, pin in sorted(pins.items())]
    fresh = folder / f".{PINS}.{os.getpid()}"
    fresh.write_text("".join(lines), encoding="utf-8")
    os.replace(fresh, folder / PINS)

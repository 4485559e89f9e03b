"""Damage of files: bytes that change, files that end early, headers that lie."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from experiments.attack.victims import Victim
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.manifest import Manifest, SegmentRecord, read_manifest
from hiernorm.storage.tensors import ALIGNMENT

LENGTHS = 120
"""Lengths that a file is cut to."""


def flip_bytes(victim: Victim, seed: int, deadline: float) -> Counter[str]:
    """Change every byte of every file, one at a time; what was answered.

    Bytes are taken in random order, so that a run that is cut short has met all files. Searches
    have one thread: to start another takes longer than all else.
    """
    os.environ["HIERNORM_THREADS"] = "1"
    rng = np.random.default_rng(seed)
    places = [(file, at) for file in victim.files() for at in range(file.stat().st_size)]
    found: Counter[str] = Counter(bytes=len(places))
    for place in rng.permutation(len(places)):
        if time.monotonic() >= deadline:
            break
        file, at = places[place]
        with _changed(file, at, int(rng.integers(1, 256))):
            found[victim.ask()] += 1
    return found


@contextmanager
def _changed(file: Path, at: int, change: int) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR)
    try:
        byte = os.pread(descriptor, 1, at)
        os.pwrite(descriptor, bytes([byte[0] ^ change]), at)
        yield
        os.pwrite(descriptor, byte, at)
    finally:
        os.close(descriptor)


def truncate_files(victim: Victim, seed: int, deadline: float) -> Counter[str]:
    """Cut every file at many lengths; what was answered."""
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for file in victim.files():
        whole = file.read_bytes()
        for length in np.unique(rng.integers(0, len(whole), LENGTHS)).tolist():
            if time.monotonic() >= deadline:
                break
            file.write_bytes(whole[:length])
            found[victim.ask()] += 1
        file.write_bytes(whole)
    return found


def forge_headers(path: Path, seed: int, deadline: float) -> Counter[str]:
    """Give segments headers that lie, with digests to match, in processes of their own.

    A forged file may be answered from: digests are no signatures. It must not end the process.
    """
    found: Counter[str] = Counter()
    while not found or time.monotonic() < deadline:
        command = [sys.executable, "-m", "experiments.attack.damage", str(path), str(seed)]
        child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        found.update(json.loads(line) for line in child.stdout.splitlines())
        if child.returncode:
            found["crashed"] += 1
        seed += 1
    return found


def _forge(path: Path, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    manifest = read_manifest(path)
    record = manifest.segments[0]
    file = path / record.data.file
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    rest = whole[8 + length :]
    queries = np.eye(manifest.parameters.dim, dtype=np.float32)
    try:
        for _ in range(count):
            header = json.loads(whole[8 : 8 + length])
            for _ in range(int(rng.integers(1, 4))):
                _lie(header, rng)
            text = json.dumps(header).encode()
            text += b" " * (-(8 + len(text)) % ALIGNMENT)
            head = len(text).to_bytes(8, "little") + text
            file.write_bytes(head + rest)
            forged = replace(
                record.data, bytes=len(head) + len(rest), header_sha256=sha256(head).hexdigest()
            )
            _publish(path, manifest, replace(record, data=forged))
            print(json.dumps(_read(path, queries)), flush=True)
    finally:
        file.write_bytes(whole)
        manifest.write(path)


def _publish(path: Path, manifest: Manifest, first: SegmentRecord) -> None:
    replace(manifest, segments=(first, *manifest.segments[1:])).write(path)


def _read(path: Path, queries: Any) -> str:
    try:
        with hiernorm.Database.open(path) as db:
            db.search(queries, 3)
            db.range(queries, 0.0)
            db.check()
    except DatabaseError:
        return "refused"
    return "answered"


def _lie(header: dict[str, Any], rng: np.random.Generator) -> None:
    """Change one thing that a header says."""
    names = [name for name in header if name != "__metadata__"]
    name = names[rng.integers(len(names))]
    numbers = (0, 1, -1, 2**31, 2**32, 2**63, 2**64, 10**30, int(rng.integers(0, 10**6)))
    number = numbers[rng.integers(len(numbers))]
    entry = header[name]
    match int(rng.integers(7)):
        case 0:
            entry["shape"] = [number, *entry["shape"][1:]]
        case 1:
            entry["data_offsets"][int(rng.integers(2))] = number
        case 2:
            entry["dtype"] = ("F64", "U8", "I64", "BF16", "X")[rng.integers(5)]
        case 3:
            del header[name]
        case 4:
            other = names[rng.integers(len(names))]
            if other in header:
                header[name], header[other] = header[other], entry
        case 5:
            fit = json.loads(header["__metadata__"]["hiernorm"])
            keys = list(fit)
            fit[keys[rng.integers(len(keys))]] = number
            header["__metadata__"]["hiernorm"] = json.dumps(fit)
        case _:
            about = json.loads(header["__metadata__"]["hiernorm"])
            if isinstance(about.get("fit"), dict) and about["fit"]:
                keys = list(about["fit"])
                about["fit"][keys[rng.integers(len(keys))]] = number
            header["__metadata__"]["hiernorm"] = json.dumps(about)


if __name__ == "__main__":
    _forge(Path(sys.argv[1]), int(sys.argv[2]), 200)

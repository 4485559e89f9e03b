"""Fuzzes the readers of files that others may have written; run by `make fuzz`.

Whatever the bytes, a reader returns what lies within them or raises DatabaseError; atheris finds
its way by coverage, from headers that are right.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FunctionType

import atheris

from hiernorm.storage import manifest, tensors
from hiernorm.storage.errors import DatabaseError
from paths import GOLDEN

SEEDS = GOLDEN / "v1"
WHOLE = 4096
"""Bytes of a file that are fuzzed: header and first data."""


def read_as_header(data: bytes) -> None:
    """No tensor lies outside the bytes."""
    try:
        header = tensors.read_header(data, len(data))
    except DatabaseError:
        return
    for tensor in header.tensors.values():
        if not 8 <= tensor.begin <= tensor.end <= len(data):
            raise AssertionError(f"{tensor} in {len(data)} bytes")


def read_as_manifest(data: bytes) -> None:
    """A manifest that is believed names files of its own folder."""
    try:
        found = manifest.parse_manifest(data, Path("manifest.json"))
    except DatabaseError:
        return
    for name in found.file_names():
        if Path(name).name != name:
            raise AssertionError(name)


def try_both(data: bytes) -> None:
    """One input, both readers."""
    read_as_header(data)
    # A valid header around arbitrary JSON gets further than random lengths do.
    text = data[:2048]
    read_as_header(len(text).to_bytes(8, "little") + text + data[2048:])
    read_as_manifest(data)


def write_seeds(folder: Path) -> None:
    """Headers and manifests that are right, as far as they go."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in SEEDS.glob("*/*"):
        (folder / f"{file.parent.stem}-{file.name}").write_bytes(file.read_bytes()[:WHOLE])
    small = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (folder / "small").write_bytes(len(small).to_bytes(8, "little") + small + b"data")


def instrument() -> None:
    """Let atheris see which branches of the readers an input takes."""
    for module in (manifest, tensors):
        for name, function in list(vars(module).items()):
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                setattr(module, name, atheris.instrument_func(function))


def main() -> None:
    """Hand over to libFuzzer; options such as -max_total_time=60 are its own."""
    corpus = Path("build/fuzz-corpus")
    write_seeds(corpus)
    instrument()
    atheris.Setup([*sys.argv, str(corpus)], try_both)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

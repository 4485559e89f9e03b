"""Headers of segment files that others may have written: refused, or within their file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiernorm.storage.errors import DamagedError
from hiernorm.storage.tensors import TensorFile, read_header


def _file(header: Any, data: bytes = b"\0" * 64, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def _tensor(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64], **changes}}


HOSTILE_HEADERS = {
    "empty": b"",
    "seven-bytes": b"\0" * 7,
    "no-header": b"\0" * 8,
    "length-beyond-the-file": _file(_tensor(), length=2**20),
    "length-2**63": _file(_tensor(), length=2**63),
    "length-2**64-1": _file(_tensor(), length=2**64 - 1),
    "not-json": _file(b"{"),
    "not-text": _file(b"\xff\xfe"),
    "a-list": _file([]),
    "deep": _file(b"[" * 100_000),
    "deep-object": _file(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "huge-number": _file(b'{"a": ' + b"9" * 5000 + b"}"),
    "name-twice": _file(
        b'{"a":{"dtype":"U8","shape":[64],"data_offsets":[0,64]},'
        b'"a":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}}'
    ),
    "metadata-no-object": _file({"__metadata__": [], **_tensor()}),
    "metadata-no-strings": _file({"__metadata__": {"a": 1}, **_tensor()}),
    "tensor-no-object": _file({"a": 1}),
    "no-dtype": _file({"a": {"shape": [64], "data_offsets": [0, 64]}}),
    "more-than-asked": _file(_tensor(more=1)),
    "unknown-dtype": _file(_tensor(dtype="U7")),
    "dtype-a-list": _file(_tensor(dtype=["U8"])),
    "shape-no-list": _file(_tensor(shape=64)),
    "shape-negative": _file(_tensor(shape=[-64])),
    "shape-two-negatives": _file(_tensor(shape=[-8, -8])),
    "shape-a-float": _file(_tensor(shape=[64.0])),
    "shape-true": _file(_tensor(shape=[True], data_offsets=[0, 1])),
    "shape-overflows": _file(_tensor(shape=[2**32, 2**32, 64])),
    "shape-of-many": _file(_tensor(shape=[1] * 33 + [64])),
    "shape-too-small": _file(_tensor(shape=[63])),
    "offsets-one": _file(_tensor(data_offsets=[64])),
    "offsets-negative": _file(_tensor(data_offsets=[-64, 0])),
    "offsets-reversed": _file(_tensor(data_offsets=[64, 0])),
    "offsets-beyond": _file(_tensor(data_offsets=[64, 128])),
    "offsets-huge": _file(_tensor(data_offsets=[2**64, 2**64 + 64])),
    "gap": _file({"a": {"dtype": "U8", "shape": [10], "data_offsets": [0, 10]}}),
    "overlap": _file({**_tensor(), "b": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}),
    "trailing-bytes": _file(_tensor(), data=b"\0" * 65),
}


@pytest.mark.parametrize("name", HOSTILE_HEADERS)
def test_hostile_headers_are_refused(tmp_path: Path, name: str) -> None:
    data = HOSTILE_HEADERS[name]
    with pytest.raises(DamagedError):
        read_header(data, len(data))
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(DamagedError, match=r"x\.safetensors "):
        TensorFile(tmp_path / "x.safetensors")


@settings(max_examples=300)
@given(
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    length=st.integers(0, 500),
)
def test_any_header_is_refused_or_stays_within_its_file(
    edits: list[tuple[int, int]], length: int
) -> None:
    tensors = {
        "a": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]},
        "b": {"dtype": "U8", "shape": [32], "data_offsets": [32, 64]},
    }
    data = bytearray(_file({"__metadata__": {"c": "d"}, **tensors}))
    for place, value in edits:
        if place < len(data):
            data[place] = value
    data = data[: length or None]
    try:
        header = read_header(bytes(data), len(data))
    except DamagedError:
        return
    for tensor in header.tensors.values():
        assert 8 <= tensor.begin <= tensor.end <= len(data)

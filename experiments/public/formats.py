"""Readers of public benchmark files: HDF5 of ann-benchmarks and VIBE, Parquet, fvecs and its kin.

| format | where from | holds |
|---|---|---|
| `.hdf5`, `.h5` | ann-benchmarks, VIBE | `train`, `test`, `neighbors`, attribute `distance` |
| `.parquet` | Hugging Face, VectorDBBench | a column of lists of numbers, a row per vector |
| `.fvecs`, `.bvecs`, `.ivecs` | TEXMEX (SIFT1M, GIST1M) | the dimension as int32, the numbers |
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.settings import Metric

DISTANCES: dict[str, Metric] = {
    "euclidean": "l2",
    "angular": "cosine",
    "cosine": "cosine",
    "normalized": "ip",
    "ip": "ip",
}
"""Distances of ann-benchmarks and VIBE, and our metrics."""

COLUMNS = ("emb", "embedding", "embeddings", "vector", "openai", "feature")
"""Columns of Parquet files that are taken for vectors, the first that there is."""

ITEMS = {".fvecs": np.dtype("<f4"), ".bvecs": np.dtype("u1"), ".ivecs": np.dtype("<i4")}
"""Types of the numbers of a vector."""


@dataclass(frozen=True)
class PublicSet:
    """Vectors to search, queries, and the answer where the file has one.

    Attributes
    ----------
    entries, queries
        ``(n, d)`` and ``(m, d)``.
    metric
        One of ours.
    neighbors
        Rows of the nearest entries ``(m, k)``, or None.
    """

    entries: Float32Array
    queries: Float32Array
    metric: Metric
    neighbors: Int64Array | None = None


def read_hdf5(file: Path) -> PublicSet:
    """Read a file of ann-benchmarks or VIBE.

    Raises
    ------
    ValueError
        If a dataset is missing, or distance or type of the vectors are not ours.
    """
    h5py = import_extra("h5py", extra="colmap")
    with h5py.File(file, "r") as content:
        for name in ("train", "test"):
            if name not in content:
                found = ", ".join(content) or "nothing"
                raise ValueError(f"{file.name} has no dataset {name!r}: it has {found}")
        distance = _text(content.attrs.get("distance", "none"))
        if distance not in DISTANCES:
            known = ", ".join(DISTANCES)
            raise ValueError(f"{file.name} has the distance {distance!r}; known are {known}")
        kind = _text(content.attrs.get("point_type", "float"))
        if kind == "binary":
            raise ValueError(f"{file.name} has binary vectors; only numbers are read")
        neighbors = content["neighbors"][:] if "neighbors" in content else None
        return PublicSet(
            np.asarray(content["train"][:], np.float32),
            np.asarray(content["test"][:], np.float32),
            DISTANCES[distance],
            None if neighbors is None else np.asarray(neighbors, np.int64),
        )


def read_parquet(file: Path, column: str | None = None) -> Float32Array:
    """Read the vectors ``(n, d)`` of a Parquet file.

    Parameters
    ----------
    file
        With a column of lists of equal length.
    column
        Its name  [the first of `COLUMNS` that there is]
    """
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    names = parquet.read_schema(file).names
    column = column or next((name for name in COLUMNS if name in names), None)
    if column is None or column not in names:
        wanted = column or " or ".join(COLUMNS)
        raise ValueError(f"{file.name} has no column {wanted}: it has {', '.join(names)}")
    values = parquet.read_table(file, columns=[column])[column].combine_chunks()
    flat = np.asarray(values.flatten(), np.float32)
    if len(values) == 0 or len(flat) % len(values):
        raise ValueError(f"{file.name}: the lists of {column!r} differ in length")
    lengths = {len(row) for row in (values[0], values[len(values) - 1])}
    if lengths != {len(flat) // len(values)}:
        raise ValueError(f"{file.name}: the lists of {column!r} differ in length")
    return flat.reshape(len(values), -1)


def read_vecs(file: Path) -> NDArray[Any]:
    """Read the vectors ``(n, d)`` of a .fvecs, .bvecs or .ivecs file, in the type of the file."""
    if file.suffix not in ITEMS:
        raise ValueError(f"{file.name} is none of {', '.join(ITEMS)}")
    item = ITEMS[file.suffix]
    head = np.fromfile(file, "<i4", count=1)
    if len(head) == 0 or head[0] < 1:
        raise ValueError(f"{file.name} is empty, or does not begin with a dimension")
    dim = int(head[0])
    row = np.dtype([("dim", "<i4"), ("items", item, (dim,))])
    if file.stat().st_size % row.itemsize:
        raise ValueError(f"{file.name} has no whole number of vectors of {dim} dimensions")
    rows = np.fromfile(file, row)
    if (rows["dim"] != dim).any():
        raise ValueError(f"{file.name} has vectors of other dimensions than {dim}")
    items: NDArray[Any] = np.ascontiguousarray(rows["items"])
    return items


def read_vectors(file: Path) -> Float32Array:
    """Read the vectors of a Parquet, fvecs, bvecs or .npy file as float32 ``(n, d)``."""
    if file.suffix == ".parquet":
        return read_parquet(file)
    if file.suffix == ".npy":
        return np.asarray(np.load(file, allow_pickle=False), np.float32)
    return np.asarray(read_vecs(file), np.float32)


def read_set(file: Path, queries: Path | None = None, metric: Metric = "l2") -> PublicSet:
    """Read a set: one HDF5 file, or a file of entries and one of queries with a metric."""
    if file.suffix in (".hdf5", ".h5"):
        return read_hdf5(file)
    if queries is None:
        raise ValueError(f"{file.name} has entries only: give a file of queries too")
    return PublicSet(read_vectors(file), read_vectors(queries), metric)


def _text(value: Any) -> str:
    """An attribute, which some writers store as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)

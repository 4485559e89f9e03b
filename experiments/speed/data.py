"""The vectors of a case: synthetic ones, or descriptors from .npy files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.harness.comparison import Case
from hiernorm import synthetic
from hiernorm.normalize import normalize
from hiernorm.reference import Float32Array

QUERY_STRIDE = 50
"""Without a query file every 50th row becomes a query and leaves the database."""


@dataclass(frozen=True)
class Descriptors:
    """Rows of a file, split into database and queries, not yet normalised."""

    database: Float32Array
    queries: Float32Array


def draw(case: Case, queries: int, seed: int) -> tuple[Float32Array, Float32Array]:
    """Draw the synthetic database and queries of a case."""
    if case.point is None:
        data = synthetic.plain(case.n, queries, seed=seed)
    else:
        major, alpha = case.point
        data = synthetic.hierarchical(case.n, queries, major=major, alpha=alpha, seed=seed)
    return data.database, data.queries


def load(database_file: Path, queries_file: Path | None, queries: int) -> Descriptors:
    """Read real descriptors; at most `queries` queries are kept."""
    rows = _load_rows(database_file)
    if queries_file is not None:
        asked = _load_rows(queries_file)
        if asked.shape[1] != rows.shape[1]:
            raise ValueError(
                f"{queries_file} has {asked.shape[1]} dimensions, "
                f"{database_file} has {rows.shape[1]}"
            )
        return Descriptors(rows, asked[:queries])
    if len(rows) < 2:
        raise ValueError(f"{database_file} has {len(rows)} rows; queries and database need two")
    is_query = np.arange(len(rows)) % QUERY_STRIDE == 0
    return Descriptors(rows[~is_query], rows[is_query][:queries])


def normalise(descriptors: Descriptors, case: Case) -> tuple[Float32Array, Float32Array]:
    """Give descriptors the normalisation of a case: hierarchical, or unit length."""
    pair = (descriptors.database, descriptors.queries)
    if case.point is None:
        database, queries = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in pair)
    else:
        major, alpha = case.point
        database, queries = (normalize(rows, major=major, alpha=alpha) for rows in pair)
    return database, queries


def _load_rows(file: Path) -> Float32Array:
    rows = np.load(file, allow_pickle=False)
    if rows.ndim != 2 or rows.dtype.kind != "f":
        raise ValueError(
            f"{file} must hold a matrix of floats, got {rows.ndim} axes of {rows.dtype}"
        )
    return np.ascontiguousarray(rows, dtype=np.float32)

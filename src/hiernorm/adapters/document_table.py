"""A table of documents: vectors, texts and metadata in a database, or in memory.

What the stores of LangChain, LlamaIndex and Haystack have in common. A document is an entry with a
string key. Its payload is the text, the rest of it as JSON (a column that is called as the
framework is) and the fields of its metadata (:mod:`hiernorm.adapters.document_fields`).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.adapters.document_fields import columns_of, to_json
from hiernorm.adapters.document_filters import Fields
from hiernorm.array_types import Float32Array
from hiernorm.index import Index
from hiernorm.payload import ID, KEY
from hiernorm.payload.columns import Column
from hiernorm.payload.conditions import compile_condition
from hiernorm.settings import Metric
from hiernorm.storage.database import Database

TEXT = "text"
DEFAULT_METRIC: Metric = "cosine"
LOCK_TIMEOUT = 10.0
"""Seconds that a change waits for another process that writes."""


@dataclass(frozen=True)
class Row:
    """A document to write: its parts, and the metadata that filters can ask for."""

    key: str
    vector: Any
    text: str | None
    record: Mapping[str, Any]
    metadata: Mapping[str, Any]
    flags: Mapping[str, bool] | None = None


@dataclass(frozen=True)
class FoundRow:
    """A document that was read, with its score if it was searched for."""

    key: str
    text: str | None
    record: dict[str, Any]
    flags: dict[str, bool]
    score: float | None = None


class DocumentTable:
    """Documents in a database, or in memory.

    Parameters
    ----------
    framework
        Name of the column with the rest of each document.
    path
        Folder of the database, opened or made; None keeps the documents in memory.
    dim
        Number of dimensions; None takes that of the first document.
    metric
        ``"cosine"`` (default), ``"ip"`` or ``"l2"``; an existing database has its own.

    Examples
    --------
    >>> table = DocumentTable("langchain")
    >>> table.write([Row("a", [1, 0], "one", {}, {"n": 1}), Row("b", [0, 1], "two", {}, {"n": 2})])
    >>> [row.key for row in table.search([1, 0.1], 2, where="meta.n > 1")]
    ['b']
    """

    def __init__(
        self,
        framework: str,
        path: str | os.PathLike[str] | None = None,
        *,
        dim: int | None = None,
        metric: Metric | None = None,
    ) -> None:
        self._framework = framework
        self._path = None if path is None else Path(path)
        self._metric = metric
        self._writing = threading.RLock()
        self._entries: Database | Index | None = None
        if self._path is not None and self._path.exists() and any(self._path.iterdir()):
            self._entries = self._open(self._path, dim)
        elif dim is not None:
            self._entries = self._make(dim)

    def _open(self, path: Path, dim: int | None) -> Database:
        database = Database.open(path, lock_timeout=LOCK_TIMEOUT)
        columns = database.columns
        if not database.string_keys or (columns and self._framework not in columns):
            raise ValueError(
                f"{path} is a database, but its entries are no {self._framework} documents; "
                f"columns are {', '.join(columns) or 'none'}"
            )
        for name, wanted, there in (
            ("dimensions", dim, database.dim),
            ("metric", self._metric, database.metric),
        ):
            if wanted not in (None, there):
                raise ValueError(f"{path} has {name} {there!r}, {wanted!r} was asked for")
        return database

    def _make(self, dim: int) -> Database | Index:
        metric = self._metric or DEFAULT_METRIC
        if self._path is None:
            return Index(dim, metric=metric, string_keys=True)
        return Database.create(
            self._path, dim, metric=metric, string_keys=True, lock_timeout=LOCK_TIMEOUT
        )

    @property
    def entries(self) -> Database | Index | None:
        """The database, or the index in memory; None as long as no dimensions are known."""
        return self._entries

    @property
    def metric(self) -> Metric:
        """The metric of the scores."""
        return (self._metric or DEFAULT_METRIC) if self._entries is None else self._entries.metric

    @property
    def columns(self) -> dict[str, str]:
        """Name to type of the payload columns, and of the key."""
        return {KEY: "string"} | ({} if self._entries is None else self._entries.columns)

    def fields(self, names: Mapping[str, str] | None = None) -> Fields:
        """The fields of the documents, for filters."""
        return Fields(self.columns, names)

    def __len__(self) -> int:
        return 0 if self._entries is None else len(self._entries)

    def __contains__(self, key: object) -> bool:
        return self._entries is not None and key in self._entries

    def write(self, rows: Sequence[Row]) -> None:
        """Write documents in one change; those with the same key are replaced, the last counts."""
        rows = list({row.key: row for row in rows}.values())
        if not rows:
            return
        with self._writing:
            if self._entries is None:
                self._entries = self._make(len(rows[0].vector))
            if isinstance(self._entries, Database):
                self._entries.refresh()
            payload = self._payload(rows)
            vectors = [np.asarray(row.vector, np.float32) for row in rows]
            self._entries.upsert(vectors, ids=[row.key for row in rows], payload=payload)

    def _payload(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        records = [to_json(f"document {row.key!r}:", row.record) for row in rows]
        payload: dict[str, list[Any]] = {self._framework: records}
        texts = [row.text for row in rows]
        if any(text is not None for text in texts):
            payload[TEXT] = texts
        for flag in rows[0].flags or {}:
            payload[flag] = [(row.flags or {})[flag] for row in rows]
        return payload | columns_of([row.metadata for row in rows], self.columns)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete documents; keys that are not there are ignored."""
        with self._writing:
            if self._entries is not None and len(keys):
                self._entries.delete(list(keys), ignore_missing=True)

    def delete_where(self, where: str | None = None) -> int:
        """Delete the documents for which a condition is true, or all; returns their number."""
        with self._writing:
            keys = [row.key for row in self.select(where)]
            self.delete(keys)
            return len(keys)

    def search(self, vector: Any, k: int, where: str | None = None) -> list[FoundRow]:
        """The k best documents for which the condition is true, best first."""
        if self._entries is None:
            return []
        hits = self._entries.search(np.asarray(vector, np.float32), k, where=where)
        return self._rows(hits.to_arrow()) if len(self._entries) else []

    def get(self, keys: Sequence[str]) -> list[FoundRow]:
        """The documents with these keys, in this order; keys that are not there are left out."""
        there = [key for key in keys if key in self]
        if self._entries is None or not there:
            return []
        return self._rows(self._entries.payload(there))

    def select(self, where: str | None = None) -> list[FoundRow]:
        """All documents for which the condition is true, in the order of their ids."""
        if self._entries is None or not len(self._entries):
            return []
        table = self._entries.payload()
        if where is not None:
            columns = [Column(ID, "int64"), *(Column(*column) for column in self.columns.items())]
            table = table.filter(compile_condition(where, columns)(table))
        return self._rows(table)

    def vectors(self, keys: Sequence[str]) -> Float32Array:
        """The vectors ``(n, d)`` of these keys; KeyError for one that is not there."""
        if self._entries is None or not len(keys):
            return np.empty((0, 0), np.float32)
        return self._entries.reconstruct(list(keys))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copy the documents to a new database, which a table of this path opens."""
        entries = self._entries
        if isinstance(entries, Database):
            entries.snapshot(path).close()
            return
        if entries is None:
            raise ValueError("there are no documents to save")
        with Database.create(path, entries.dim, metric=entries.metric, string_keys=True) as copy:
            if len(entries):
                payload = entries.payload().drop_columns([ID, KEY])
                copy.add(entries.reconstruct(entries.ids), ids=entries.keys, payload=payload)

    def new_keys(self, contents: Sequence[str]) -> list[str]:
        """Keys for documents without one, from their contents: the same in every run.

        The second document with the same content has ``-2`` at the end of its key, and so on.
        """
        keys: dict[str, None] = {}
        for content in contents:
            stem = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
            key, copy = stem, 2
            while key in keys or key in self:
                key, copy = f"{stem}-{copy}", copy + 1
            keys[key] = None
        return list(keys)

    def _rows(self, table: Any) -> list[FoundRow]:
        flags = [name for name, kind in self.columns.items() if kind == "bool" and "." not in name]
        wanted = (KEY, TEXT, self._framework, "score", *flags)
        rows = table.select([name for name in wanted if name in table.schema.names]).to_pylist()
        return [
            FoundRow(
                row[KEY],
                row.get(TEXT),
                json.loads(row[self._framework]),
                {flag: row[flag] for flag in flags},
                row.get("score"),
            )
            for row in rows
        ]

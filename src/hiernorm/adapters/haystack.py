"""Haystack's ``DocumentStore`` and its embedding retriever: exact search over documents."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from hiernorm.extras import check_extra

check_extra("haystack", "haystack", "pyarrow")

from haystack import Document, component, default_from_dict, default_to_dict  # noqa: E402
from haystack.document_stores.errors import DuplicateDocumentError  # noqa: E402
from haystack.document_stores.types import (  # noqa: E402
    DuplicatePolicy,
    FilterPolicy,
    apply_filter_policy,
)
from haystack.errors import FilterError  # noqa: E402

from hiernorm.adapters.document_fields import as_time  # noqa: E402
from hiernorm.adapters.document_filters import Fields, all_of, any_of, none_of  # noqa: E402
from hiernorm.adapters.document_table import TEXT, DocumentTable, FoundRow, Row  # noqa: E402
from hiernorm.index import Index  # noqa: E402
from hiernorm.payload import KEY  # noqa: E402
from hiernorm.settings import Metric  # noqa: E402
from hiernorm.storage.database import Database  # noqa: E402

FRAMEWORK = "haystack"
EMBEDDED = "embedded"
"""Column that says whether a document has an embedding; only those are retrieved."""
NAMES = {"content": TEXT, "id": KEY}
DOCUMENT_FIELDS = {field.name for field in dataclasses.fields(Document)}
ORDER = ("<", "<=", ">", ">=")
JOINS = {
    "AND": all_of,
    "OR": any_of,
    "NOT": lambda conditions: none_of([all_of(conditions)]),
}


class HiernormDocumentStore:
    """Documents, with embeddings or without, in a database or in memory.

    Parameters
    ----------
    path
        Folder of the database, opened or made; without it documents are kept in memory.
    embedding_dim
        Number of dimensions of the embeddings.
    metric
        ``"cosine"``, ``"ip"`` or ``"l2"``.

    Notes
    -----
    Embeddings are stored in float32. Times without a zone are UTC in filters.

    Examples
    --------
    >>> store = HiernormDocumentStore(embedding_dim=2)
    >>> store.write_documents([Document(id="a", content="one", embedding=[1.0, 0.0]),
    ...                        Document(id="b", content="two", meta={"n": 2})])
    2
    >>> store.filter_documents({"field": "meta.n", "operator": ">", "value": 1})[0].content
    'two'
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedding_dim: int = 768,
        metric: Metric = "cosine",
    ) -> None:
        self.path = None if path is None else str(path)
        self.embedding_dim = embedding_dim
        self.metric = metric
        self._table = DocumentTable(FRAMEWORK, path, dim=embedding_dim, metric=metric)

    @property
    def database(self) -> Database | Index | None:
        """The database, or the index in memory."""
        return self._table.entries

    def to_dict(self) -> dict[str, Any]:
        """The parameters, for a pipeline that is saved."""
        parameters = {"path": self.path, "embedding_dim": self.embedding_dim}
        return default_to_dict(self, **parameters, metric=self.metric)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HiernormDocumentStore:
        """The store with these parameters."""
        store: HiernormDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        """The number of documents."""
        return len(self._table)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """The number of documents that match."""
        return len(self._table.select(self._where(filters)))

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """All documents that match, in an order that does not depend on that of writing."""
        return self._documents(self._table.select(self._where(filters)), embeddings=True)

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents in one change; returns their number.

        Parameters
        ----------
        documents
            They may lack embeddings.
        policy
            What to do with an id that exists: ``OVERWRITE``, ``SKIP`` or ``FAIL`` (default), which
            raises DuplicateDocumentError and writes nothing.
        """
        if not isinstance(documents, list) or not all(isinstance(d, Document) for d in documents):
            raise ValueError("write_documents needs a list of Document objects")
        if policy == DuplicatePolicy.OVERWRITE:
            self._table.write([self._row(document) for document in documents])
            return len(documents)
        fresh: dict[str, Document] = {}
        for document in documents:
            if document.id not in fresh and document.id not in self._table:
                fresh[document.id] = document
            elif policy != DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"document {document.id!r} is in the store already")
        self._table.write([self._row(document) for document in fresh.values()])
        return len(fresh)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; ids that are not there are ignored."""
        self._table.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        self._table.delete_where()

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match; returns their number."""
        return self._table.delete_where(self._where(filters))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set metadata fields of the documents that match; returns their number."""
        found = self.filter_documents(filters)
        changed = [dataclasses.replace(document, meta=document.meta | meta) for document in found]
        self._table.write([self._row(document) for document in changed])
        return len(changed)

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        """The ``top_k`` documents nearest to the embedding, with canonical scores."""
        if not len(self._table):
            return []
        matching = self._where(filters)
        where = EMBEDDED if matching is None else all_of([EMBEDDED, matching])
        rows = self._table.search(query_embedding, top_k, where)
        return self._documents(rows, embeddings=return_embedding)

    def _row(self, document: Document) -> Row:
        record = document.to_dict(flatten=False)
        for name in ("id", "content", "embedding", "score"):
            record.pop(name, None)
        vector: Any = document.embedding
        if vector is None:  # no search returns it: any vector that the metric accepts will do
            vector = np.eye(1, self.embedding_dim, dtype=np.float32)[0]
        elif len(vector) != self.embedding_dim:
            raise ValueError(
                f"document {document.id!r} has an embedding of {len(vector)} dimensions, the store "
                f"has embedding_dim={self.embedding_dim}: give the dimensions of your model"
            )
        flags = {EMBEDDED: document.embedding is not None}
        return Row(document.id, vector, document.content, record, document.meta, flags)

    def _documents(self, rows: list[FoundRow], *, embeddings: bool) -> list[Document]:
        documents = []
        vectors = (
            self._table.vectors([row.key for row in rows]) if embeddings else [None] * len(rows)
        )
        for row, vector in zip(rows, vectors, strict=True):
            parts = row.record | {"id": row.key, "content": row.text, "score": row.score}
            if vector is not None and row.flags[EMBEDDED]:
                parts["embedding"] = vector.tolist()
            documents.append(Document.from_dict(parts))
        return documents

    def _where(self, filters: dict[str, Any] | None) -> str | None:
        if not filters:
            return None
        try:
            return translate(filters, self._table.fields(NAMES))
        except (TypeError, ValueError) as error:
            raise FilterError(str(error)) from error


def translate(filters: dict[str, Any], fields: Fields) -> str:
    """The condition of filters."""
    for name in ("operator", "value" if "field" in filters else "conditions"):
        if name not in filters:
            raise FilterError(f"filter: {name!r} is missing in {filters}")
    operator = filters["operator"]
    if "field" in filters:
        return _compare(filters["field"], operator, filters["value"], fields)
    if operator not in JOINS:
        raise FilterError(f"filter: unknown operator {operator!r}; expected {', '.join(JOINS)}")
    return JOINS[operator]([translate(part, fields) for part in filters["conditions"]])


def _compare(name: str, operator: str, value: Any, fields: Fields) -> str:
    field = name.removeprefix("meta.")
    if field == name and name in DOCUMENT_FIELDS and name not in NAMES:
        raise FilterError(f"filter: {name!r} cannot be filtered; use meta.*, content or id")
    if name != field and field in NAMES:
        fields = fields.without_names()
    if operator in ORDER:
        if isinstance(value, str) and as_time(value) is None:
            raise FilterError(f"filter: {name!r} {operator} {value!r}: texts must be ISO dates")
        return fields.order(field, operator, value)
    if operator in ("==", "!="):
        found = _equal(field, value, fields)
        return found if operator == "==" else none_of([found])
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"filter: {name!r} {operator} needs a list, got {value!r}")
        found = any_of([_equal(field, item, fields) for item in value])
        return found if operator == "in" else none_of([found])
    known = ", ".join(("==", "!=", *ORDER, "in", "not in"))
    raise FilterError(f"filter: unknown operator {operator!r}; expected {known}")


def _equal(field: str, value: Any, fields: Fields) -> str:
    """Equal values, or texts that stand for the same moment."""
    moment = as_time(value) if isinstance(value, str) else None
    same = [fields.equal(field, value)]
    return any_of(same if moment is None else [*same, fields.equal(field, moment)])


@component
class HiernormEmbeddingRetriever:
    """Retrieves the documents of a :class:`HiernormDocumentStore` nearest to an embedding.

    Parameters
    ----------
    document_store
        The store.
    filters
        Filters of every run; ``filter_policy`` says what becomes of them if a run has its own.
    top_k
        Number of documents.
    return_embedding
        Whether documents come with their embeddings.

    Examples
    --------
    >>> store = HiernormDocumentStore(embedding_dim=2)
    >>> store.write_documents([Document(id="a", content="one", embedding=[1.0, 0.0])])
    1
    >>> HiernormEmbeddingRetriever(store).run(query_embedding=[0.6, 0.8])["documents"][0].content
    'one'
    """

    def __init__(
        self,
        document_store: HiernormDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        if not isinstance(document_store, HiernormDocumentStore):
            raise TypeError(
                "document_store must be a HiernormDocumentStore, got "
                f"{type(document_store).__name__}"
            )
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.return_embedding = return_embedding
        self.filter_policy = (
            FilterPolicy.from_str(filter_policy)
            if isinstance(filter_policy, str)
            else filter_policy
        )

    def to_dict(self) -> dict[str, Any]:
        """The parameters, for a pipeline that is saved."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            return_embedding=self.return_embedding,
            filter_policy=self.filter_policy.value,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HiernormEmbeddingRetriever:
        """The retriever with these parameters."""
        parameters = dict(data["init_parameters"])
        if isinstance(parameters["document_store"], dict):
            store = HiernormDocumentStore.from_dict(parameters["document_store"])
            parameters["document_store"] = store
        retriever: HiernormEmbeddingRetriever = default_from_dict(
            cls, data | {"init_parameters": parameters}
        )
        return retriever

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """The documents nearest to ``query_embedding``, best first."""
        chosen = apply_filter_policy(self.filter_policy, self.filters, filters)
        documents = self.document_store.embedding_retrieval(
            query_embedding, chosen, top_k or self.top_k, self.return_embedding
        )
        return {"documents": documents}

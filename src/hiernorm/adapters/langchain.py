"""LangChain's ``VectorStore``: exact search over documents in a database, or in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hiernorm.extras import check_extra

check_extra("langchain", "langchain_core", "pyarrow")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_core.vectorstores import VectorStore  # noqa: E402
from langchain_core.vectorstores.utils import maximal_marginal_relevance  # noqa: E402

from hiernorm.adapters.document_fields import to_json  # noqa: E402
from hiernorm.adapters.document_filters import Fields, all_of, any_of, none_of  # noqa: E402
from hiernorm.adapters.document_table import DocumentTable, FoundRow, Row  # noqa: E402
from hiernorm.index import Index  # noqa: E402
from hiernorm.settings import Metric  # noqa: E402
from hiernorm.storage.database import Database  # noqa: E402

FRAMEWORK = "langchain"
Filter = str | Mapping[str, Any]
ORDER = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
OPERATORS = ("$eq", "$ne", *ORDER, "$in", "$nin", "$contains", "$exists", "$and", "$or", "$not")


class HiernormVectorStore(VectorStore):
    """Documents and their embeddings, searched exactly.

    Parameters
    ----------
    embedding
        Model that embeds documents and queries.
    path
        Folder of the database: opened if it is there, else made when the first documents are
        added. Without it the documents are kept in memory.
    metric
        ``"cosine"`` (default), ``"ip"`` or ``"l2"``.

    Notes
    -----
    A ``filter`` is a dict such as ``{"lang": "en", "year": {"$gte": 2020}}`` (operators
    ``$eq $ne $lt $lte $gt $gte $in $nin $contains $exists $and $or $not``) or a condition on the
    columns of the database, such as ``"meta.year >= 2020"``. It is applied inside the search: the
    answer has k documents if k match. Documents without an id get one from their content, so two
    runs give the same answer also where scores are equal.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> store = HiernormVectorStore(DeterministicFakeEmbedding(size=8))
    >>> ids = store.add_texts(["one", "two"], [{"n": 1}, {"n": 2}], ids=["a", "b"])
    >>> [document.id for document in store.similarity_search("one", k=2)]
    ['a', 'b']
    >>> [document.id for document in store.similarity_search("one", filter={"n": {"$gt": 1}})]
    ['b']
    """

    def __init__(
        self,
        embedding: Embeddings,
        path: str | os.PathLike[str] | None = None,
        *,
        metric: Metric | None = None,
    ) -> None:
        self._embedding = embedding
        self._table = DocumentTable(FRAMEWORK, path, metric=metric)

    @property
    def embeddings(self) -> Embeddings:
        """The model that embeds documents and queries."""
        return self._embedding

    @property
    def database(self) -> Database | Index | None:
        """The database, or the index in memory; None before the first document."""
        return self._table.entries

    def add_documents(
        self, documents: list[Document], ids: list[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Embed and add documents in one change; those with the same id are replaced.

        Parameters
        ----------
        documents
            They may have ids of their own.
        ids
            Ids in place of their own, one for every document.

        Returns
        -------
        The ids.
        """
        if not documents:
            return []
        if ids is not None and len(ids) != len(documents):
            raise ValueError(
                f"{len(documents)} documents need {len(documents)} ids, got {len(ids)}"
            )
        keys = self._keys(documents, ids)
        vectors = self._embedding.embed_documents([document.page_content for document in documents])
        self._table.write(
            [
                Row(key, vector, document.page_content, document.metadata, document.metadata)
                for key, vector, document in zip(keys, vectors, documents, strict=True)
            ]
        )
        return keys

    def _keys(self, documents: list[Document], ids: list[str | None] | None) -> list[str]:
        given = [document.id for document in documents] if ids is None else ids
        for document in documents:
            to_json("metadata", document.metadata)  # an error names the field
        unnamed = [
            to_json("document", [document.page_content, document.metadata])
            for document, key in zip(documents, given, strict=True)
            if key is None
        ]
        made = iter(self._table.new_keys(unnamed))
        return [next(made) if key is None else str(key) for key in given]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by their ids, or all of them; ids that are not there are ignored."""
        if ids is None:
            self._table.delete_where()
        else:
            self._table.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in this order; ids that are not there are left out."""
        return [_document(row) for row in self._table.get(ids)]

    def similarity_search(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents that are nearest to the query."""
        return self.similarity_search_by_vector(
            self._embedding.embed_query(query), k, filter, **kwargs
        )

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents that are nearest to the embedding."""
        return [document for document, _ in self._search(embedding, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The k nearest documents with their scores; a higher score is better in every metric.

        The score is the cosine, the inner product, or minus the squared distance (l2).
        """
        return self._search(self._embedding.embed_query(query), k, filter)

    def _search(
        self, embedding: list[float], k: int, filter: Filter | None
    ) -> list[tuple[Document, float]]:
        rows = self._table.search(embedding, k, self._where(filter))
        return [(_document(row), row.score or 0.0) for row in rows]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self._table.metric == "cosine":
            return lambda score: min(max(score, 0.0), 1.0)
        if self._table.metric == "l2":
            return lambda score: 1.0 / (1.0 + float(np.sqrt(-score)))
        raise ValueError("inner products have no relevance from 0 to 1: use metric='cosine'")

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Of the ``fetch_k`` nearest documents, k that differ from one another."""
        return self.max_marginal_relevance_search_by_vector(
            self._embedding.embed_query(query), k, fetch_k, lambda_mult, filter, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Of the ``fetch_k`` documents nearest to the embedding, k that differ from one another."""
        rows = self._table.search(embedding, max(k, fetch_k), self._where(filter))
        vectors = self._table.vectors([row.key for row in rows])
        chosen = maximal_marginal_relevance(
            np.asarray(embedding, np.float32), list(vectors), lambda_mult, k
        )
        return [_document(rows[place]) for place in chosen]

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | os.PathLike[str] | None = None,
        metric: Metric | None = None,
        **kwargs: Any,
    ) -> HiernormVectorStore:
        """A store with these texts; parameters as for the class and for ``add_texts``."""
        store = cls(embedding, path, metric=metric)
        store.add_texts(list(texts), metadatas, ids=ids)
        return store

    def _where(self, filter: Filter | None) -> str | None:
        if filter is None or isinstance(filter, str):
            return filter
        if not isinstance(filter, Mapping):
            raise TypeError(
                "filter must be a dict such as {'year': {'$gte': 2020}} or a condition such as "
                f"'meta.year >= 2020', got {type(filter).__name__}"
            )
        return translate(filter, self._table.fields())


def translate(filter: Mapping[str, Any], fields: Fields) -> str:
    """The condition of a filter.

    Examples
    --------
    >>> translate({"year": {"$gte": 2020}}, Fields({"meta.year": "int64"}))
    '(("meta.year" is not null and "meta.year" >= 2020))'
    """
    parts = []
    for name, wanted in filter.items():
        if name in ("$and", "$or"):
            if not isinstance(wanted, Sequence) or isinstance(wanted, str):
                raise ValueError(f"filter: {name} needs a list of filters, got {wanted!r}")
            inner = [translate(part, fields) for part in wanted]
            parts.append(all_of(inner) if name == "$and" else any_of(inner))
        elif name == "$not":
            parts.append(none_of([translate(wanted, fields)]))
        elif name.startswith("$"):
            _refuse(name)
        elif isinstance(wanted, Mapping):
            parts += [_compare(name, *operation, fields) for operation in wanted.items()]
        else:
            parts.append(fields.equal(name, wanted))
    return all_of(parts)


def _compare(field: str, operator: str, value: Any, fields: Fields) -> str:
    if operator in ORDER:
        return fields.order(field, ORDER[operator], value)
    if operator in ("$in", "$nin"):
        if not isinstance(value, (list, tuple, set, frozenset)):
            raise ValueError(f"filter: {operator} of {field!r} needs a list, got {value!r}")
        found = fields.among(field, value)
        return found if operator == "$in" else none_of([found])
    if operator in ("$eq", "$ne"):
        found = fields.equal(field, value)
        return found if operator == "$eq" else none_of([found])
    if operator == "$contains":
        parts = [fields.has_item(field, value)]
        return any_of(
            [*parts, *([fields.has_text(field, value)] if isinstance(value, str) else [])]
        )
    if operator == "$exists":
        missing = fields.missing(field)
        return none_of([missing]) if value else missing
    if operator == "$not":
        parts = [_compare(field, sign, part, fields) for sign, part in value.items()]
        return none_of([all_of(parts)])
    _refuse(operator, f" of {field!r} (a nested field is written 'author.name')")
    raise AssertionError


def _refuse(operator: str, where: str = "") -> None:
    raise ValueError(
        f"filter: unknown operator {operator!r}{where}; operators are {', '.join(OPERATORS)}"
    )


def _document(row: FoundRow) -> Document:
    return Document(id=row.key, page_content=row.text or "", metadata=row.record)

"""LlamaIndex's vector store: exact search over nodes in a database, or in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hiernorm.extras import check_extra

check_extra("llama-index", "llama_index.core", "pyarrow")

from llama_index.core.bridge.pydantic import PrivateAttr  # noqa: E402
from llama_index.core.indices.query.embedding_utils import (  # noqa: E402
    get_top_k_mmr_embeddings,
)
from llama_index.core.schema import BaseNode, MetadataMode  # noqa: E402
from llama_index.core.vector_stores.types import (  # noqa: E402
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import (  # noqa: E402
    metadata_dict_to_node,
    node_to_metadata_dict,
)

from hiernorm.adapters.document_filters import Fields, all_of, any_of, none_of  # noqa: E402
from hiernorm.adapters.document_table import DocumentTable, FoundRow, Row  # noqa: E402
from hiernorm.index import Index  # noqa: E402
from hiernorm.payload import KEY  # noqa: E402
from hiernorm.settings import Metric  # noqa: E402
from hiernorm.storage.database import Database  # noqa: E402

FRAMEWORK = "llama_index"
CONTENT, KIND, SOURCE = "_node_content", "_node_type", "ref_doc_id"
NAMES = {"doc_id": f"meta.{SOURCE}", "document_id": f"meta.{SOURCE}", "node_id": KEY}
"""Other names of the id of the source document, and that of the node."""
PREFETCH = 4.0
"""Candidates per result of a search by maximal marginal relevance."""
ORDER = {
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
}
JOINS = {FilterCondition.AND: all_of, FilterCondition.OR: any_of, FilterCondition.NOT: none_of}


class HiernormVectorStore(BasePydanticVectorStore):
    """Nodes and their embeddings, searched exactly.

    Parameters
    ----------
    path
        Folder of the database: opened if it is there, else made when the first nodes are added.
        Without it the nodes are kept in memory, and :meth:`persist` writes them to a database.
    metric
        ``"cosine"`` (default), ``"ip"`` or ``"l2"``.

    Notes
    -----
    Filters may be nested. They are applied inside the search: the answer has
    ``similarity_top_k`` nodes if so many match. Not translated is ``text_match_insensitive``.

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> from llama_index.core.vector_stores.types import VectorStoreQuery
    >>> store = HiernormVectorStore()
    >>> store.add([TextNode(id_="a", text="one", embedding=[1, 0]),
    ...            TextNode(id_="b", text="two", embedding=[0, 1])])
    ['a', 'b']
    >>> store.query(VectorStoreQuery(query_embedding=[0.6, 0.8], similarity_top_k=2)).ids
    ['b', 'a']
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    _table: DocumentTable = PrivateAttr()

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, metric: Metric | None = None
    ) -> None:
        super().__init__(stores_text=True)
        self._table = DocumentTable(FRAMEWORK, path, metric=metric)

    @classmethod
    def class_name(cls) -> str:
        """The name of the class."""
        return "HiernormVectorStore"

    @property
    def database(self) -> Database | Index | None:
        """The database, or the index in memory; None before the first node."""
        return self._table.entries

    @property
    def client(self) -> Database | Index | None:
        """The :attr:`database`, by LlamaIndex's name."""
        return self.database

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with embeddings in one change; those with the same id are replaced."""
        self._table.write([_row(node) for node in nodes])
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a source document."""
        self._table.delete_where(self._table.fields().equal(SOURCE, ref_doc_id))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes with these ids that match the filters; one of both is needed."""
        if node_ids is None and filters is None:
            raise ValueError("delete_nodes needs node_ids or filters; clear() deletes all nodes")
        self._table.delete_where(self._where(node_ids=node_ids, filters=filters))

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes with these ids that match the filters."""
        rows = self._table.select(self._where(node_ids=node_ids, filters=filters))
        return [_node(row) for row in rows]

    def clear(self) -> None:
        """Delete all nodes."""
        self._table.delete_where()

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that are nearest to the query's embedding, with their scores.

        Empty lists of ``node_ids`` and ``doc_ids`` mean no limit.
        Modes are ``DEFAULT`` and ``MMR``, which takes ``mmr_prefetch_factor``.
        """
        if query.query_embedding is None:
            raise ValueError("the query has no embedding, which this store searches by")
        # LlamaIndex's retrievers give empty lists where there is no limit.
        where = self._where(query.node_ids or None, query.doc_ids or None, query.filters)
        if query.mode == VectorStoreQueryMode.DEFAULT:
            rows = self._table.search(query.query_embedding, query.similarity_top_k, where)
            return _result(rows, [row.score or 0.0 for row in rows])
        if query.mode == VectorStoreQueryMode.MMR:
            return self._query_mmr(query, where, kwargs.get("mmr_prefetch_factor", PREFETCH))
        raise ValueError(f"query mode {query.mode.value!r} is not there: use 'default' or 'mmr'")

    def _query_mmr(
        self, query: VectorStoreQuery, where: str | None, factor: float
    ) -> VectorStoreQueryResult:
        k = query.similarity_top_k
        rows = self._table.search(query.query_embedding, max(k, int(k * factor)), where)
        vectors = self._table.vectors([row.key for row in rows])
        scores, places = get_top_k_mmr_embeddings(
            query.query_embedding or [],
            vectors.tolist(),
            similarity_top_k=k,
            embedding_ids=list(range(len(rows))),
            mmr_threshold=query.mmr_threshold,
        )
        return _result([rows[place] for place in places], scores)

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Copy the nodes to a new database, unless they are in one already."""
        if isinstance(self._table.entries, Index):
            if fs is not None:
                raise ValueError("a database needs a local folder: leave fs out")
            self._table.save(persist_path)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: Any = None) -> HiernormVectorStore:
        """Open a store that :meth:`persist` wrote."""
        return cls(persist_path)

    def _where(
        self,
        node_ids: list[str] | None = None,
        doc_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
    ) -> str | None:
        fields = self._table.fields(NAMES)
        parts = [
            fields.among(name, wanted)
            for name, wanted in (("node_id", node_ids), (SOURCE, doc_ids))
            if wanted is not None
        ]
        if filters is not None and filters.filters:
            parts.append(translate(filters, fields))
        return all_of(parts) if parts else None


def translate(filters: MetadataFilters, fields: Fields) -> str:
    """The condition of filters, nested ones too."""
    parts = [
        translate(part, fields) if isinstance(part, MetadataFilters) else _compare(part, fields)
        for part in filters.filters
    ]
    return JOINS[filters.condition or FilterCondition.AND](parts)


def _compare(part: MetadataFilter, fields: Fields) -> str:
    field, operator, value = part.key, part.operator, part.value
    if operator in ORDER:
        return fields.order(field, ORDER[operator], value)
    if operator == FilterOperator.EQ:
        return fields.equal(field, value) if value is not None else "false"
    if operator == FilterOperator.NE:
        return none_of([fields.equal(field, value)]) if value is not None else "true"
    if operator == FilterOperator.IS_EMPTY:
        return any_of([fields.missing(field), fields.equal(field, ""), fields.equal(field, [])])
    if operator in (FilterOperator.CONTAINS, FilterOperator.TEXT_MATCH):
        if operator == FilterOperator.CONTAINS:
            return _contains(fields, field, value)
        if not isinstance(value, str):
            raise ValueError(f"filter: text_match of {field!r} needs a text, got {value!r}")
        return fields.has_text(field, value)
    if operator == FilterOperator.TEXT_MATCH_INSENSITIVE:
        raise ValueError(
            f"filter: text_match_insensitive of {field!r} cannot be translated to a condition; "
            "use text_match, or store the text in lower case too"
        )
    if not isinstance(value, list):
        raise ValueError(f"filter: {operator.value} of {field!r} needs a list, got {value!r}")
    if operator == FilterOperator.IN:
        return fields.among(field, value)
    if operator == FilterOperator.NIN:
        return none_of([fields.among(field, value)])
    contained = [_contains(fields, field, item) for item in value]
    if operator == FilterOperator.ANY:
        return any_of(contained)
    return all_of([none_of([fields.missing(field)]), *contained])


def _contains(fields: Fields, field: str, value: Any) -> str:
    """``value in metadata[field]``: an item of a list, or a part of a text."""
    parts = [fields.has_item(field, value)]
    return any_of([*parts, *([fields.has_text(field, value)] if isinstance(value, str) else [])])


def _row(node: BaseNode) -> Row:
    metadata = node_to_metadata_dict(node, remove_text=True)
    record = {name: metadata.pop(name) for name in (CONTENT, KIND)}
    for name in ("document_id", "doc_id", SOURCE):
        metadata.pop(name, None)
    if node.ref_doc_id is not None:
        metadata[SOURCE] = node.ref_doc_id
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return Row(node.node_id, node.get_embedding(), text, record, metadata)


def _node(row: FoundRow) -> BaseNode:
    return metadata_dict_to_node(row.record, text=row.text)


def _result(rows: Sequence[FoundRow], scores: Sequence[float]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[_node(row) for row in rows],
        similarities=list(scores),
        ids=[row.key for row in rows],
    )

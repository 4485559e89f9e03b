"""The LlamaIndex store: its answers are those of an index, its filters those of LlamaIndex."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llama_index.core")
pytest.importorskip("pyarrow")

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm.adapters.llama_index import HiernormVectorStore

X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
METADATA = [
    {"n": i, "lang": "en" if i % 3 else "de", "tags": ["all", f"t{i % 4}"]}
    | ({"rare": ""} if i % 5 else {})
    for i in range(40)
]


PLACES = (("near", 1.0), ("far", 0.0), ("farther", -1.0))
"""Nodes beside (1, 1), which is where MockEmbedding puts every text."""


def filled(path=None):
    store = HiernormVectorStore(path)
    nodes = [
        TextNode(
            id_=f"n{i}",
            text=f"text {i}",
            metadata=METADATA[i],
            embedding=X[i].tolist(),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{i % 2}")},
        )
        for i in range(40)
    ]
    assert store.add(nodes) == [node.node_id for node in nodes]
    return store


@pytest.fixture(scope="module")
def store():
    return filled()


def query(**parts):
    return VectorStoreQuery(query_embedding=X[7].tolist(), similarity_top_k=5, **parts)


OPERATIONS = [
    ("n", "==", 3),
    ("n", "!=", 3),
    ("missing", "!=", 3),
    ("n", ">", 30),
    ("n", "<=", 4.5),
    ("lang", "in", ["de", "fr"]),
    ("lang", "nin", ["de"]),
    ("tags", "any", ["t1", "t2"]),
    ("tags", "all", ["all", "t3"]),
    ("tags", "contains", "t0"),
    ("lang", "text_match", "e"),
    ("rare", "is_empty", None),
]


@pytest.mark.parametrize("condition", list(FilterCondition))
@pytest.mark.parametrize(("key", "operator", "value"), OPERATIONS)
def test_filters_choose_what_llama_index_chooses(key, operator, value, condition, store):
    filters = MetadataFilters(
        filters=[
            MetadataFilter(key=key, operator=FilterOperator(operator), value=value),
            MetadataFilter(key="n", operator=FilterOperator.LT, value=20),
        ],
        condition=condition,
    )
    allowed = build_metadata_filter_fn(lambda name: METADATA[int(name[1:])], filters)
    rows = np.array([i for i in range(40) if allowed(f"n{i}")], np.int64)
    assert {node.node_id for node in store.get_nodes(filters=filters)} == {f"n{i}" for i in rows}
    index = hiernorm.Index(8, metric="cosine")
    if len(rows):
        index.add(X[rows], ids=rows)
    ids, scores = index.search(X[7], k=min(5, max(len(rows), 1)))
    found = store.query(query(filters=filters))
    assert found.ids == [f"n{i}" for i in ids[0] if i >= 0]
    assert_array_equal(found.similarities, scores[0][ids[0] >= 0])


def test_nested_filters_and_documents_are_conditions_too():
    small = MetadataFilter(key="n", operator=FilterOperator.LT, value=4)
    nested = MetadataFilters(
        filters=[
            MetadataFilters(filters=[small], condition="not"),
            MetadataFilter(key="lang", value="de"),
        ]
    )
    store = filled()
    assert {node.metadata["n"] for node in store.get_nodes(filters=nested)} == set(range(6, 40, 3))
    assert set(store.query(query(doc_ids=["doc1"], node_ids=["n1", "n2"])).ids) == {"n1"}


def test_nodes_come_back_whole_and_persist(tmp_path):
    store = filled()
    store.persist(str(tmp_path / "a.hn"))
    again = HiernormVectorStore.from_persist_path(str(tmp_path / "a.hn"))
    assert again.query(query()) == store.query(query())
    node = again.get_nodes(["n3"])[0]
    assert (node.text, node.metadata, node.ref_doc_id) == ("text 3", METADATA[3], "doc1")


def test_deletions_go_by_document_by_node_and_by_filter():
    store = filled()
    store.delete("doc0")
    assert len(store.client) == 20
    store.delete_nodes(["n1", "n2"])
    store.delete_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="lang", value="de")]))
    assert {node.metadata["n"] for node in store.get_nodes()} == {
        i for i in range(3, 40, 2) if i % 3
    }
    store.clear()
    assert store.query(query()).ids == []


def test_marginal_relevance_returns_as_many_nodes():
    found = filled().query(query(mode=VectorStoreQueryMode.MMR))
    assert found.ids[0] == "n7"
    assert len(set(found.ids)) == 5


def test_what_has_no_condition_is_refused():
    insensitive = MetadataFilter(
        key="lang", operator=FilterOperator.TEXT_MATCH_INSENSITIVE, value="D"
    )
    with pytest.raises(ValueError, match="cannot be translated"):
        filled().query(query(filters=MetadataFilters(filters=[insensitive])))
    with pytest.raises(ValueError, match="is not there"):
        filled().query(query(mode=VectorStoreQueryMode.HYBRID))


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_retriever_of_llama_index_finds_the_nodes(tmp_path, on_disk):
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding

    store = HiernormVectorStore(tmp_path / "nodes.hn" if on_disk else None)
    context = StorageContext.from_defaults(vector_store=store)
    nodes = [TextNode(id_=name, text=name, embedding=[1.0, place]) for name, place in PLACES]
    model = MockEmbedding(embed_dim=2)
    made = VectorStoreIndex(nodes, storage_context=context, embed_model=model)
    opened = VectorStoreIndex.from_vector_store(store, embed_model=model)
    for index in (made, opened):
        found = index.as_retriever(similarity_top_k=2).retrieve("any text")
        assert [result.node.node_id for result in found] == ["near", "far"]
    assert len(store.database) == 3

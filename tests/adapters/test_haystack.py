"""The Haystack store passes Haystack's own tests of document stores; its retriever is exact."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("haystack")
pytest.importorskip("pyarrow")

from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing.document_store import (
    CountDocumentsByFilterTest,
    CountDocumentsTest,
    DeleteDocumentsTest,
    DocumentStoreBaseExtendedTests,
    WriteDocumentsTest,
)
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm.adapters.haystack import HiernormDocumentStore, HiernormEmbeddingRetriever


def rounded(documents):
    """Documents in the order of their ids, with embeddings as float32 holds them."""
    return [
        document
        if document.embedding is None
        else dataclasses.replace(document, embedding=np.float32(document.embedding).tolist())
        for document in sorted(documents, key=lambda document: document.id)
    ]


class Rules:
    @staticmethod
    def assert_documents_are_equal(received, expected):
        assert rounded(received) == rounded(expected)

    def test_write_documents(self, document_store):
        document = Document(content="text")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])


class TestStandardInMemory(Rules, DocumentStoreBaseExtendedTests, CountDocumentsByFilterTest):
    @pytest.fixture
    def document_store(self):
        return HiernormDocumentStore()


class TestStandardOnDisk(Rules, CountDocumentsTest, DeleteDocumentsTest, WriteDocumentsTest):
    @pytest.fixture
    def document_store(self, tmp_path):
        return HiernormDocumentStore(tmp_path / "documents.hn", embedding_dim=4)


X = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)


def filled(path=None):
    store = HiernormDocumentStore(path, embedding_dim=4)
    documents = [
        Document(
            id=f"d{i}",
            content=f"text {i}",
            meta={"n": i, "by": {"name": "ab"[i % 2]}},
            embedding=x.tolist(),
        )
        for i, x in enumerate(X)
    ]
    assert store.write_documents([*documents, Document(id="bare", content="no vector")]) == 61
    return store


def test_a_filtered_retrieval_is_full_and_has_the_bits_of_an_index(tmp_path):
    index = hiernorm.Index(4, metric="cosine")
    odd = np.arange(1, 60, 2)
    index.add(X[odd], ids=odd)
    ids, scores = index.search(X[0], k=10)
    for store in (filled(), filled(tmp_path / "d.hn")):
        filters = {"field": "meta.by.name", "operator": "==", "value": "b"}
        found = HiernormEmbeddingRetriever(store, filters).run(X[0].tolist())["documents"]
        assert [document.id for document in found] == [f"d{i}" for i in ids[0]]
        assert_array_equal([document.score for document in found], scores[0])


def test_documents_without_an_embedding_are_kept_and_never_retrieved():
    store = filled()
    found = store.embedding_retrieval([1.0, 0.0, 0.0, 0.0], top_k=100)
    assert len(found) == 60
    assert (
        store.filter_documents({"field": "id", "operator": "==", "value": "bare"})[0].embedding
        is None
    )


def test_a_saved_pipeline_opens_the_same_documents(tmp_path):
    pipeline = Pipeline()
    pipeline.add_component(
        "retriever", HiernormEmbeddingRetriever(filled(tmp_path / "d.hn"), top_k=3)
    )
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["hiernorm.adapters.haystack"])
    question = {"retriever": {"query_embedding": X[5].tolist()}}
    assert again.run(question) == pipeline.run(question)
    assert again.run(question)["retriever"]["documents"][0].id == "d5"


@pytest.mark.parametrize("field", ["embedding", "score"])
def test_filters_that_have_no_condition_are_refused(field):
    with pytest.raises(FilterError, match="cannot be filtered"):
        filled().filter_documents({"field": field, "operator": "==", "value": 1})


def test_an_embedding_of_other_dimensions_names_the_parameter_to_set():
    store = HiernormDocumentStore()
    with pytest.raises(ValueError, match=r"3 dimensions, the store has embedding_dim=768"):
        store.write_documents([Document(content="one", embedding=[1.0, 0.0, 0.0])])

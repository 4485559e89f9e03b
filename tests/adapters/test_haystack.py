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
    DocumentStoreBaseExtendedTests,
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


class HaystackTests(DocumentStoreBaseExtendedTests, CountDocumentsByFilterTest):
    @staticmethod
    def assert_documents_are_equal(received, expected):
        assert rounded(received) == rounded(expected)

    def test_write_documents(self, document_store):
        document = Document(content="text")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])


class TestStandardInMemory(HaystackTests):
    @pytest.fixture
    def document_store(self):
        return HiernormDocumentStore()


class TestStandardOnDisk(HaystackTests):
    @pytest.fixture
    def document_store(self, tmp_path):
        return HiernormDocumentStore(tmp_path / "documents.hn")

"""The LangChain store passes LangChain's own tests; its answers are those of an index."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_tests")
pytest.importorskip("pyarrow")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm.adapters.langchain import HiernormVectorStore

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


class TestStandardInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        return HiernormVectorStore(self.get_embeddings())


class TestStandardOnDisk(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        return HiernormVectorStore(self.get_embeddings(), tmp_path / "documents.hn")

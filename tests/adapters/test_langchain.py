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


X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
METADATA = [
    {
        "n": i,
        "lang": "en" if i % 3 else "de",
        "tags": ["all", f"t{i % 4}"],
        "by": {"name": f"a{i % 2}"},
    }
    for i in range(40)
]


class Table(DeterministicFakeEmbedding):
    """Row ``n`` of X for the text ``n``."""

    size: int = 8

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return X[int(text)].tolist()


def filled(path=None, order=range(40)):
    store = HiernormVectorStore(Table(), path)
    documents = [Document(id=f"d{i}", page_content=str(i), metadata=METADATA[i]) for i in order]
    store.add_documents(documents)
    return store


FILTERS = [
    ({"lang": "de"}, lambda m: m["lang"] == "de"),
    ({"lang": {"$ne": "de"}, "n": {"$gte": 5}}, lambda m: m["lang"] != "de" and m["n"] >= 5),
    ({"n": {"$in": [1, 2.0, 50]}}, lambda m: m["n"] in (1, 2)),
    ({"tags": {"$contains": "t3"}}, lambda m: "t3" in m["tags"]),
    (
        {"$or": [{"n": {"$lt": 2}}, {"by.name": "a1"}]},
        lambda m: m["n"] < 2 or m["by"]["name"] == "a1",
    ),
    ({"$not": {"n": {"$gt": 3}}}, lambda m: m["n"] <= 3),
    ({"city": {"$exists": False}}, lambda m: True),
    ({"by": {"$exists": True}}, lambda m: True),
    ("meta.n between 3 and 8", lambda m: 3 <= m["n"] <= 8),
]


@pytest.mark.parametrize(("filter", "allowed"), FILTERS, ids=[str(f) for f, _ in FILTERS])
def test_a_filtered_answer_has_the_bits_of_an_index_of_the_matching_documents(filter, allowed):
    rows = np.array([i for i in range(40) if allowed(METADATA[i])])
    index = hiernorm.Index(8, metric="cosine")
    index.add(X[rows], ids=rows)
    k = min(6, len(rows))
    ids, scores = index.search(X[7], k=k)
    found = filled().similarity_search_with_score("7", k=k, filter=filter)
    assert [document.id for document, _ in found] == [f"d{i}" for i in ids[0]]
    assert_array_equal([score for _, score in found], scores[0])


def test_a_database_is_opened_again_and_does_not_depend_on_the_order_of_additions(tmp_path):
    first = filled(tmp_path / "a.hn").similarity_search_with_score("3", k=9)
    filled(tmp_path / "b.hn", reversed(range(40)))
    again = HiernormVectorStore(Table(), tmp_path / "b.hn")
    assert again.similarity_search_with_score("3", k=9) == first
    assert again.get_by_ids(["d2"])[0].metadata == METADATA[2]


def test_fields_may_change_their_type_from_one_document_to_the_next():
    store = HiernormVectorStore(Table())
    store.add_texts(["0", "1", "2", "3"], [{"v": 1}, {"v": "one"}, {"v": 1.5}, {"v": True}])
    for value, text in ((1, "0"), ("one", "1"), (1.5, "2"), (True, "3")):
        assert [d.page_content for d in store.similarity_search("0", filter={"v": value})] == [text]
    assert len(store.similarity_search("0", filter={"v": {"$gte": 1}})) == 2


def test_documents_without_an_id_get_the_same_ids_in_every_run():
    ids = [HiernormVectorStore(Table()).add_texts(["0", "1", "0"]) for _ in range(2)]
    assert ids[0] == ids[1]
    assert ids[0][2] == ids[0][0] + "-2"


def test_parts_of_texts_with_special_characters_are_found():
    names = ["50%", "a_b", "back\\slash", "end\\", "it's", "line\nbreak", "plain"]
    store = HiernormVectorStore(Table())
    store.add_texts([str(i) for i in range(7)], [{"name": n, "list": [n]} for n in names])
    for i, name in enumerate(names):
        for field in ("name", "list"):
            found = store.similarity_search("0", k=7, filter={field: {"$contains": name}})
            assert [d.page_content for d in found] == [str(i)]


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"n": {"$regex": "x"}}, "unknown operator"),
        ({"n": {"$in": 3}}, "needs a list"),
        ({"tags": {"$gt": [1]}}, "have an order"),
        (lambda document: True, "filter must be a dict"),
    ],
)
def test_filters_that_have_no_condition_are_refused(filter, message):
    with pytest.raises((TypeError, ValueError), match=message):
        filled().similarity_search("0", filter=filter)


def test_metadata_that_is_no_json_is_named():
    with pytest.raises(TypeError, match="'when' is object"):
        HiernormVectorStore(Table()).add_texts(["0"], [{"when": object()}], ids=["a"])


def test_a_database_of_other_entries_is_refused(tmp_path):
    with hiernorm.Database.create(tmp_path / "x.hn", 8) as database:
        database.add(X)
    with pytest.raises(ValueError, match="no langchain documents"):
        HiernormVectorStore(Table(), tmp_path / "x.hn")


def test_marginal_relevance_and_relevance_scores_are_there():
    store = filled()
    chosen = store.max_marginal_relevance_search("3", k=3, fetch_k=10, filter={"n": {"$lt": 20}})
    assert chosen[0].id == "d3"
    assert len({document.id for document in chosen}) == 3
    scores = [score for _, score in store.similarity_search_with_relevance_scores("3", k=40)]
    assert scores[0] == 1.0
    assert min(scores) >= 0


@pytest.mark.parametrize(
    ("metadata", "field"),
    [({"a": object()}, "field 'a' is object"), ({"a": [1, {2}]}, "field 'a' item 1 is set")],
)
def test_metadata_that_is_not_json_is_refused_by_its_name(metadata, field):
    store = HiernormVectorStore(Table())
    with pytest.raises(TypeError, match=f"metadata {field}, which JSON does not have"):
        store.add_texts(["1"], [metadata])

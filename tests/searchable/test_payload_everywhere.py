"""Payload, string keys and conditions: the same in an index, a database and a sharded database."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from containers import CONTAINERS, empty
from hiernorm.payload.keys import ids_of_keys
from support import assert_same_bits, assert_same_hits, expected_hits, hn_rows, raises_text

arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
compute = pytest.importorskip("pyarrow.compute", reason="needs hiernorm[payload]")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs hiernorm[payload]")

D, MAJOR, N = 12, 4, 120
X, QUERIES = hn_rows(N, D, MAJOR), hn_rows(5, D, MAJOR, seed=1)
IDS = np.random.default_rng(2).permutation(3 * N)[:N]
KEYS = [f"doc-{i}" for i in range(N)]
LANG = [["en", "de", None][i % 3] for i in range(N)]
YEAR = [None if i % 7 == 0 else 2000 + i % 20 for i in range(N)]
PAYLOAD = {"lang": LANG, "year": YEAR}
WHERE = "lang = 'en' and year >= 2010"
CHOSEN = np.array([LANG[i] == "en" and (YEAR[i] or 0) >= 2010 for i in range(N)])


@pytest.fixture(params=CONTAINERS)
def container(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plain(container: str) -> Iterator[Any]:
    with empty(container, "plain", D, MAJOR) as found:
        found.add(X, IDS, payload=PAYLOAD)
        yield found


@pytest.fixture
def keyed(container: str) -> Iterator[Any]:
    with empty(container, "plain", D, MAJOR, string_keys=True) as found:
        found.add(X, KEYS, payload=PAYLOAD)
        yield found


def test_a_condition_is_a_filter(plain: Any) -> None:
    right = expected_hits(QUERIES, X[CHOSEN], 7, ids=IDS[CHOSEN])
    expression = (compute.field("lang") == "en") & (compute.field("year") >= 2010)
    for where in (WHERE, expression):
        hits = plain.search(QUERIES, 7, where=where)
        assert_same_hits(hits, right)
        assert hits.certificate.exact.all()
        assert hits.certificate.entries == CHOSEN.sum()
    assert plain.verify(QUERIES, hits, where=WHERE).ok
    assert not plain.verify(QUERIES, hits).ok
    threshold = float(right[1][0, 3])
    ids, _ = plain.range(QUERIES, threshold, where=WHERE)[0]
    np.testing.assert_array_equal(ids, right[0][0, : len(ids)])
    assert len(ids) >= 4
    few = plain.search(QUERIES, 3, where="id < 30 and lang is null")
    at = (IDS < 30) & np.array([text is None for text in LANG])
    assert_same_hits(few, expected_hits(QUERIES, X[at], 3, ids=IDS[at]))
    with pytest.raises(ValueError, match=r"no column 'langs' \(did you mean 'lang'\?\)"):
        plain.search(QUERIES, 3, where="langs = 'en'")


def test_payload_comes_back_by_id(plain: Any) -> None:
    assert plain.columns == {"lang": "string", "year": "int64"}
    some = [5, 80, 7]
    assert plain.payload(IDS[some]).to_pylist() == [
        {"id": int(IDS[i]), "lang": LANG[i], "year": YEAR[i]} for i in some
    ]
    assert plain.payload(columns=["year"]).to_pydict() == {
        "id": np.sort(IDS).tolist(),
        "year": [YEAR[i] for i in np.argsort(IDS)],
    }
    with pytest.raises(KeyError, match=f"id {3 * N} is not in the"):
        plain.payload([3 * N])


def test_payload_changes_with_its_entries(plain: Any) -> None:
    plain.upsert(X[:2], IDS[[8, 9]], payload={"year": [1, 2]})
    plain.delete(IDS[:4])
    plain.add(X[:1], [3 * N], payload={"tag": ["new"]})
    plain.add(X[:1], [3 * N + 1])
    nothing = {"lang": None, "year": None, "tag": None}
    assert plain.payload([IDS[8], IDS[9], 3 * N, 3 * N + 1]).drop_columns("id").to_pylist() == [
        {**nothing, "year": 1},
        {**nothing, "year": 2},
        {**nothing, "tag": "new"},
        nothing,
    ]
    assert set(plain.search(QUERIES, N, where="tag is not null").ids.ravel()) == {-1, 3 * N}
    kept = plain.search(QUERIES[:1], N, where=WHERE).ids.ravel()
    assert set(kept) - {-1} == set(IDS[CHOSEN]) - {*IDS[:4], *IDS[[8, 9]]}
    assert plain.check().ok
    if hasattr(plain, "compact"):
        plain.compact()
        assert plain.check().ok
        assert set(plain.search(QUERIES[:1], N, where=WHERE).ids.ravel()) == set(kept)
    with pytest.raises(TypeError, match="payload column 'year' is int64, string came"):
        plain.add(X[:1], payload={"year": ["x"]})
    with raises_text(ValueError, "2 vectors need 2 rows of payload, got 1"):
        plain.add(X[:2], payload={"year": [5]})
    assert len(plain) == N - 2


def test_hits_show_the_payload(plain: Any) -> None:
    hits = plain.search(QUERIES, 4)
    table = hits.to_arrow()
    assert table.column_names == ["query", "rank", "id", "score", "lang", "year"]
    position = {int(i): at for at, i in enumerate(IDS)}
    expected = [LANG[position[i]] for i in hits.ids.ravel().tolist()]
    assert table.column("lang").to_pylist() == expected
    assert pickle.loads(pickle.dumps(hits)).to_arrow().equals(table)


def test_string_keys_name_entries(keyed: Any) -> None:
    ids = ids_of_keys(KEYS)
    np.testing.assert_array_equal(keyed.ids, np.sort(ids))
    assert keyed.keys == [KEYS[i] for i in np.argsort(ids)]
    hits = keyed.search(QUERIES, 6, where=WHERE)
    assert_same_hits(hits, expected_hits(QUERIES, X[CHOSEN], 6, ids=ids[CHOSEN]))
    name = dict(zip(ids.tolist(), KEYS, strict=True))
    assert hits.keys.tolist() == [[name[i] for i in row] for row in hits.ids.tolist()]
    assert "doc-3" in keyed
    assert "doc-x" not in keyed
    assert_same_bits(keyed.reconstruct(["doc-9", "doc-2"]), X[[9, 2]])
    assert keyed.payload(["doc-9"]).to_pylist() == [
        {"id": int(ids[9]), "key": "doc-9", "lang": LANG[9], "year": YEAR[9]}
    ]
    few = keyed.search(QUERIES[:1], 3, where=["doc-1", "doc-2", "unknown"])
    assert set(few.keys[0].tolist()) == {"doc-1", "doc-2", None}
    assert keyed.search(QUERIES[:1], 1, where="key = 'doc-7'").keys.tolist() == [["doc-7"]]
    keyed.upsert(X[:1], ["doc-9"], payload={"year": [1]})
    keyed.delete(["doc-1", "doc-4"])
    assert len(keyed) == N - 2
    assert keyed.payload(["doc-9"]).column("year").to_pylist() == [1]
    assert_same_bits(keyed.reconstruct("doc-9"), X[:1])
    with pytest.raises(KeyError, match="key 'doc-1' is not in the"):
        keyed.delete(["doc-2", "doc-1"])
    keyed.delete(["doc-2", "doc-1"], ignore_missing=True)
    assert len(keyed) == N - 3
    with pytest.raises(ValueError, match=r"key 'doc-3' is in the .* already"):
        keyed.add(X[:1], ["doc-3"])
    with pytest.raises(ValueError, match="key 'new' is given twice"):
        keyed.add(X[:2], ["new", "new"])
    with pytest.raises(TypeError, match="has string keys: give ids, a string for every vector"):
        keyed.add(X[:1])
    assert len(keyed) == N - 3


def test_columns_of_a_parquet_file_and_of_pieces(container: str, tmp_path: Path) -> None:
    lists = arrow.FixedSizeListArray.from_arrays(X.ravel(), D)
    table = arrow.table({"vectors": lists, "ids": KEYS, **PAYLOAD})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=50)
    pieces = (
        (KEYS[at : at + 50], X[at : at + 50], table.slice(at, 50).select(["lang", "year"]))
        for at in range(0, N, 50)
    )
    for x, payload in ((tmp_path / "x.parquet", True), (pieces, None)):
        with empty(container, "plain", D, MAJOR, string_keys=True) as found:
            found.add(x, payload=payload)
            expected = found.payload(KEYS)
            assert expected.column("lang").to_pylist() == LANG
            assert expected.column("year").to_pylist() == YEAR
            assert_same_bits(found.reconstruct(KEYS), X)

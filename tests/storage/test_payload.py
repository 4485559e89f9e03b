"""Payload of a database: it stays with its entries whatever happens to them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hiernorm
from database_support import QUERIES, D, create, small_segments, vectors
from hiernorm.reference import Float32Array
from support import assert_same_bits, assert_same_hits, expected_hits, raises_text

arrow = pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
compute = pytest.importorskip("pyarrow.compute", reason="needs hiernorm[payload]")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs hiernorm[payload]")

Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_segments(entries=40, cells=True):
        yield


def _rows_of(seed: int, count: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        {
            "lang": None if rng.random() < 0.2 else str(rng.choice(["en", "de", "fr"])),
            "year": None if rng.random() < 0.2 else int(rng.integers(2000, 2025)),
        }
        for _ in range(count)
    ]


def _all_null(row: Row | None) -> Row:
    return {"lang": None, "year": None} if row is None else row


def _assert_is(db: hiernorm.Database, model: dict[int, tuple[Float32Array, Row | None]]) -> None:
    ids = sorted(model)
    assert db.ids.tolist() == ids
    expected = [{"id": i, **_all_null(model[i][1])} for i in ids]
    assert db.payload().to_pylist() == expected
    chosen = [
        i for i in ids if (r := _all_null(model[i][1]))["lang"] == "en" and (r["year"] or 0) >= 2010
    ]
    rows = np.array([model[i][0] for i in chosen], np.float32).reshape(len(chosen), D)
    hits = db.search(QUERIES, 5, where="lang = 'en' and year >= 2010")
    assert_same_hits(hits, expected_hits(QUERIES, rows, 5, ids=np.array(chosen, np.int64)))
    assert hits.certificate.entries == len(chosen)


def test_payload_follows_its_entries_through_every_change(path: Path) -> None:
    db = create(path)
    model: dict[int, tuple[Float32Array, Row | None]] = {}
    rng = np.random.default_rng(7)
    for number in range(40):
        count = int(rng.integers(1, 25))
        rows, payload = vectors(number, count), _rows_of(number, count)
        kind = str(rng.choice(["add", "upsert", "delete", "compact", "bare"])) if number else "add"
        free = rng.permutation([i for i in range(200) if i not in model])[:count].tolist()
        known = rng.permutation(list(model)).astype(int)[:count].tolist()
        if kind == "add":
            db.add(rows[: len(free)], free, payload=payload[: len(free)])
            model |= dict(zip(free, zip(rows, payload, strict=True), strict=False))
        elif kind == "upsert":
            ids = [*known[: count // 2], *free][:count]
            db.upsert(rows[: len(ids)], ids, payload=payload[: len(ids)])
            model |= dict(zip(ids, zip(rows, payload, strict=True), strict=False))
        elif kind == "bare":
            db.upsert(rows[: len(free)], free)
            model |= {i: (row, None) for i, row in zip(free, rows, strict=False)}
        elif kind == "delete":
            db.delete(known)
            for i in known:
                del model[i]
        else:
            db.compact()
        _assert_is(db, model)
    assert db.check().ok
    _assert_is(hiernorm.Database.open(path), model)
    _assert_is(db.snapshot(path.parent / "copy"), model)
    assert db.info()["segments"] > 1


UTC = timezone.utc
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "bool": ("bool_", [True, None, False]),
    **{
        f"{u}int{bits}": (
            f"{u}int{bits}",
            [np.iinfo(f"{u}int{bits}").min, None, np.iinfo(f"{u}int{bits}").max],
        )
        for u in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float32": ("float32", [0.5, None, float("-inf")]),
    "float64": ("float64", [0.1, None, 1e-300]),
    "string": ("string", ["", None, "naïve 象\0"]),
    "date": ("date32", [date(1, 1, 1), None, date(9999, 12, 31)]),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("nulls", [True, False])
def test_every_type_comes_back_as_it_was(path: Path, name: str, nulls: bool) -> None:
    kind, values = VALUES[name]
    values = values if nulls else [v for v in values if v is not None]
    db = create(path)
    column = arrow.array(values, getattr(arrow, kind)())
    db.add(vectors(1, len(values)), payload={"x": column})
    assert db.columns == {"x": name}
    db = hiernorm.Database.open(path)
    assert db.payload().column("x").to_pylist() == values
    assert db.search(QUERIES, 1, where="x is null").certificate.entries == values.count(None)
    assert db.check().ok


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_keep_their_unit_and_zone(path: Path, unit: str, zone: str | None) -> None:
    start = datetime(2020, 1, 31, 12, tzinfo=None if zone is None else UTC)
    column = arrow.array([start, None, start + timedelta(days=1)], arrow.timestamp(unit, zone))
    db = create(path)
    db.add(vectors(1, 3), payload={"at": column})
    assert db.columns == {"at": f"timestamp[{unit}{'' if zone is None else ', ' + zone}]"}
    back = hiernorm.Database.open(path).payload().column("at")
    assert back.type == column.type
    assert back.to_pylist() == column.to_pylist()
    assert db.search(QUERIES, 3, where="at > '2020-01-31T12:00:00'").ids[0].tolist() == [2, -1, -1]


def test_texts_that_are_all_empty_or_missing(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 2), payload={"t": ["", ""]})
    db.add(vectors(2, 2), payload={"t": arrow.nulls(2, arrow.string())})
    assert hiernorm.Database.open(path).payload().column("t").to_pylist() == ["", "", None, None]


def test_a_column_that_comes_later_is_null_before(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 30), payload={"a": list(range(30))})
    db.add(vectors(2, 1), payload={"b": ["new"]})
    assert db.columns == {"a": "int64", "b": "string"}
    table = db.payload([0, 30])
    assert table.to_pylist() == [{"id": 0, "a": 0, "b": None}, {"id": 30, "a": None, "b": "new"}]
    db.compact()
    assert db.payload([0, 30]).equals(table)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"year": ["x", "y"]}, "payload column 'year' is int64, string came"),
        ({"year": [True, False]}, "payload column 'year' is int64, bool came"),
        ({"share": [0.1, 0.2]}, "payload column 'share' is float32, float64 came"),
        ({"meta": [{"a": 1}, {"a": 2}]}, "store it as JSON text"),
        ({"new": [None, None]}, "all of its values are missing: give it a type"),
        ({"new": [1, "a"]}, "payload column 'new' has values of different types"),
        ({"new": ["a", "b\ud800"]}, "payload column 'new' has values of different types"),
        ({"new": [1, 2**70]}, "payload column 'new' has values of different types"),
        ({"new": "ab"}, "payload column 'new' must have one value per vector, got str"),
        ({"new": [1]}, "2 vectors need 2 rows of payload, got 1"),
        ({"new": [1, 2, 3]}, "2 vectors need 2 rows of payload, got 3"),
        ({"a": [1, 2], "b": [1]}, "payload columns have different numbers of values"),
        ({"id": [1, 2]}, "payload column 'id': that is the name of the id; rename it"),
        ({3: [1, 2]}, "payload columns have names that are strings, got 3"),
        ([{"a": 1}, 5], "row 1 of the list is int"),
        (7, "payload must be an Arrow table"),
        ("missing.parquet", "payload missing.parquet does not exist"),
        (True, "payload names columns of a Parquet file, the vectors are an array"),
    ],
)
def test_a_payload_that_does_not_fit_changes_nothing(path: Path, payload: Any, text: str) -> None:
    db = create(path)
    first = {"year": [2020], "share": arrow.array([0.5], arrow.float32())}
    db.add(vectors(1, 1), [9], payload=first)
    before = (path / "manifest.json").read_bytes()
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        db.add(vectors(2, 2), payload=payload)
    assert text in str(caught.value)
    assert (path / "manifest.json").read_bytes() == before
    assert len(list(path.glob("*.safetensors"))) == 2


def test_numbers_are_converted_only_if_none_changes(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 1), payload={"n": [1], "f": [0.5]})
    db.add(vectors(2, 1), payload={"n": np.array([2], np.uint8), "f": [3]})
    db.add(vectors(3, 1), payload={"n": [4.0], "f": np.array([0.25], np.float32)})
    assert db.payload().to_pydict() == {"id": [0, 1, 2], "n": [1, 2, 4], "f": [0.5, 3.0, 0.25]}
    with pytest.raises(TypeError, match="payload column 'n' is int64, float64 came"):
        db.add(vectors(4, 1), payload={"n": [4.5]})


def test_a_database_without_payload_is_of_version_1(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 5))
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["version"] == 1
    assert set(manifest) == {
        *("format", "version", "identity", "parameters", "generation", "next_id"),
        *("segments", "sha256"),
    }
    assert set(manifest["parameters"]) == {"dim", "major", "alpha", "metric"}
    assert set(manifest["segments"][0]) == {"data", "entries", "live", "tombstones"}
    db.add(vectors(2, 5), payload={"n": [1] * 5})
    assert json.loads((path / "manifest.json").read_text())["version"] == 2
    assert db.payload([0, 5]).column("n").to_pylist() == [None, 1]


def test_a_reader_keeps_the_payload_of_its_generation(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 3), payload={"n": [1, 2, 3]})
    reader = hiernorm.Database.open(path)
    hits = reader.search(QUERIES, 2)
    db.upsert(vectors(2, 3), [0, 1, 2], payload={"n": [7, 8, 9]})
    db.compact()
    assert reader.payload().column("n").to_pylist() == [1, 2, 3]
    assert set(hits.to_arrow().column("n").to_pylist()) <= {1, 2, 3}
    reader.refresh()
    assert reader.payload().column("n").to_pylist() == [7, 8, 9]


def test_a_file_of_columns_and_columns_of_a_file(path: Path) -> None:
    rows, count = vectors(1, 100), 100
    table = arrow.table({"lang": ["en", "de"] * 50, "n": list(range(100))})
    parquet.write_table(table, path.parent / "meta.parquet", row_group_size=7)
    lists = arrow.FixedSizeListArray.from_arrays(rows.ravel(), D)
    whole = table.append_column("vectors", lists).append_column("ids", arrow.array(range(5, 105)))
    parquet.write_table(whole, path.parent / "whole.parquet", row_group_size=13)
    np.save(path.parent / "x.npy", rows.astype(np.float64))
    first = create(path)
    first.add(path.parent / "x.npy", range(5, 105), payload=path.parent / "meta.parquet")
    second = create(path.parent / "second.hn")
    second.add(path.parent / "whole.parquet", payload=True)
    third = create(path.parent / "third.hn")
    third.add(
        (np.arange(5 + at, 5 + min(at + 9, count)), rows[at : at + 9], table.slice(at, 9))
        for at in range(0, count, 9)
    )
    for db in (first, second, third):
        assert db.info()["segments"] > 2
        assert db.payload().drop_columns("id").equals(table.cast(db.payload().schema.remove(0)))
    fourth = create(path.parent / "fourth.hn")
    fourth.add(path.parent / "whole.parquet", payload=["n"])
    assert fourth.columns == {"n": "int64"}
    assert fourth.payload().column("n").to_pylist() == list(range(100))
    with pytest.raises(ValueError, match=r"no payload column 'm' beside the vectors, but lang, n"):
        fourth.upsert(path.parent / "whole.parquet", payload=["m"])
    with raises_text(ValueError, "99 vectors need 99 rows of payload, got 100"):
        fourth.upsert(rows[:99], payload=path.parent / "meta.parquet")
    with raises_text(ValueError, "101 vectors need 101 rows of payload, got 100"):
        fourth.upsert(vectors(3, 101), payload=path.parent / "meta.parquet")


def test_hits_are_tables(path: Path) -> None:
    db = create(path, metric="l2")
    rows = vectors(1, 30)
    db.add(rows, payload={"score": list(range(30)), "lang": ["en"] * 29 + [None]})
    hits = db.search(QUERIES, 3, where="lang is not null")
    table = hits.to_arrow()
    names = ["query", "rank", "id", "score", "distance", "payload.score", "lang"]
    assert table.column_names == names
    got = table.to_pydict()
    assert got["query"] == [q for q in range(4) for _ in range(3)]
    assert got["rank"] == [0, 1, 2] * 4
    assert got["id"] == got["payload.score"] == hits.ids.ravel().tolist()
    assert_same_bits(np.array(got["score"]), hits.scores.ravel())
    assert_same_bits(np.array(got["distance"]), hits.distances.ravel())
    assert len(db.search(QUERIES, 9, where=[1, 2]).to_arrow()) == 8
    found = db.range(QUERIES, float(hits.scores[0, 1]), where="id < 20")
    ranged = found.to_arrow().to_pydict()
    assert ranged["id"] == ranged["payload.score"] == found.ids.tolist()
    assert [r for r in ranged["rank"] if r == 0] == [0] * int((np.diff(found.offsets) > 0).sum())
    pytest.importorskip("pandas", reason="needs hiernorm[pandas]")
    assert hits.to_pandas()["id"].tolist() == got["id"]
    assert found.to_pandas()["score"].tolist() == found.scores.tolist()


def test_a_pickled_answer_takes_its_payload_along(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 30), payload={"n": list(range(30))})
    for hits in (db.search(QUERIES, 3), db.range(QUERIES, 0.0)):
        data = pickle.dumps(hits)
        assert pickle.loads(data).to_arrow().equals(hits.to_arrow())
        assert len(data) < 20_000


def test_an_arrow_expression_is_a_condition(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 30), payload={"n": list(range(30))})
    field = compute.field("n")
    expression = (field > 3) & (compute.field("id") < 10)
    assert_same_hits(db.search(QUERIES, 4, where=expression), _pair(db, "n > 3 and id < 10"))
    assert len(db.select("n > 3 and id < 10")) == 6
    with pytest.raises(ValueError, match="columns are id, n"):
        db.search(QUERIES, 1, where=compute.field("m") > 3)
    with raises_text(ValueError, "where: the expression must be true or false, it is int64"):
        db.search(QUERIES, 1, where=field + 1)


def _pair(db: hiernorm.Database, where: str) -> Any:
    return tuple(db.search(QUERIES, 4, where=where))


def test_verify_and_range_know_conditions(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 60), payload={"n": list(range(60))})
    hits = db.search(QUERIES, 3, where="n between 10 and 20")
    assert db.verify(QUERIES, hits, where="n between 10 and 20").ok
    assert not db.verify(QUERIES, hits).ok
    assert set(db.range(QUERIES, -9.0, where="n in (3, 4)").ids.tolist()) == {3, 4}


def test_columns_are_read_by_name(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 2), payload={"a": [1, 2], "b": ["x", "y"]})
    assert db.payload([1], columns=["b"]).to_pylist() == [{"id": 1, "b": "y"}]
    assert db.payload([]).column_names == ["id", "a", "b"]
    with raises_text(ValueError, "there is no column 'c'; columns are a, b"):
        db.payload(columns=["c"])
    with pytest.raises(KeyError, match="id 7 is not in the database"):
        db.payload([0, 7])


@pytest.mark.parametrize("string_keys", [False, True])
def test_what_is_exported_has_its_payload(path: Path, string_keys: bool) -> None:
    db = hiernorm.Database.create(path, D, string_keys=string_keys)
    ids: Any = [f"k{i}" for i in range(60)] if string_keys else range(60)
    payload = {"n": [None, *range(59)], "day": [date(2020, 1, 1)] * 60}
    db.add(vectors(1, 60), ids, payload=payload)
    db.delete(ids[3:5])
    db.export(path.parent / "all.parquet")
    again = hiernorm.Database.create(path.parent / "again.hn", D, string_keys=string_keys)
    again.add(path.parent / "all.parquet", payload=True)
    assert again.payload().equals(db.payload())
    assert again.digest == db.digest
    if string_keys:
        with pytest.raises(ValueError, match=r"entries with string keys are written to \.parquet"):
            db.export(path.parent / "all.npz")

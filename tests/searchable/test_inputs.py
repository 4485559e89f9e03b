"""Vectors of every library: used where they are if that is possible, else refused in our words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hiernorm
from hiernorm.arrays import as_float32
from support import assert_same_bits, assert_same_hits, expected_hits

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


class OnlyDLPack:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class OnlyInterface:
    def __init__(self, array: Any) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


def _arrow() -> Any:
    return pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")


def _torch() -> Any:
    return pytest.importorskip("torch", reason="needs torch")


def _pandas() -> Any:
    return pytest.importorskip("pandas", reason="needs hiernorm[pandas]")


def _polars() -> Any:
    return pytest.importorskip("polars", reason="needs polars")


def _fixed() -> Any:
    return _arrow().FixedSizeListArray.from_arrays(X.ravel(), 4)


def _framed(column: Any) -> Any:
    return _arrow().table({"ids": list(range(6)), "vectors": column, "other": [[1.0]] * 6})


def _bfloat16() -> Any:
    types = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    return np.round(X).astype(types.bfloat16)


SHARED: dict[str, Callable[[], Any]] = {
    "numpy": lambda: X,
    "memory view": lambda: memoryview(X),
    "masked array without a masked value": lambda: np.ma.masked_array(X, mask=False),
    "array interface": lambda: OnlyInterface(X),
    "DLPack": lambda: OnlyDLPack(X),
    "torch": lambda: _torch().from_numpy(X),
    "torch that requires a gradient": lambda: _torch().from_numpy(X).requires_grad_(),
    "Arrow fixed-size lists": _fixed,
    "Arrow lists": lambda: _arrow().ListArray.from_arrays(np.arange(0, 25, 4, np.int32), X.ravel()),
    "Arrow large lists": lambda: _arrow().LargeListArray.from_arrays(
        np.arange(0, 25, 4), X.ravel()
    ),
    "Arrow tensors": lambda: _arrow().FixedShapeTensorArray.from_numpy_ndarray(X),
    "Arrow chunked array": lambda: _arrow().chunked_array([_fixed()]),
    "Arrow table": lambda: _framed(_fixed()),
    "Arrow record batch": lambda: _arrow().record_batch({"v": _fixed()}),
    "pandas column of Arrow lists": lambda: _pandas().Series(
        _fixed(), dtype=_pandas().ArrowDtype(_fixed().type)
    ),
    "polars arrays": lambda: _polars().Series(
        "v", _polars().from_arrow(_fixed()), dtype=_polars().Array(_polars().Float32, 4)
    ),
}
COPIED: dict[str, Callable[[], Any]] = {
    "lists": X.tolist,
    "list of arrays": lambda: list(X),
    "list of tensors with gradients": lambda: list(_torch().from_numpy(X).requires_grad_()),
    "torch float64": lambda: _torch().from_numpy(X.astype(np.float64)),
    "Arrow in two chunks": lambda: _arrow().chunked_array([_fixed()[:2], _fixed()[2:]]),
    "Arrow table of numbers": lambda: _arrow().table([X[:, i] for i in range(4)], names=[*"abcd"]),
    "pandas column of arrays": lambda: _pandas().Series(list(X)),
    "pandas column of lists": lambda: _pandas().Series(X.tolist()),
    "pandas frame with one such column": lambda: _pandas().DataFrame({"n": range(6), "v": list(X)}),
    "pandas frame of numbers": lambda: _pandas().DataFrame(X),
    "pandas frame with vectors and text": lambda: _pandas().DataFrame(
        {"text": ["a"] * 6, "v": list(X)}
    ),
    "pandas frame of nullable numbers": lambda: _pandas().DataFrame(X).astype("Float32"),
    "pandas frame of Arrow numbers": lambda: _pandas().DataFrame(X).astype("float[pyarrow]"),
    "Arrow views of lists": lambda: _arrow().array(
        X.tolist(), _arrow().list_view(_arrow().float32())
    ),
    "polars lists": lambda: _polars().Series("v", X.tolist()),
    "polars frame": lambda: _polars().DataFrame({"n": range(6), "v": X.tolist()}),
    "polars frame of numbers": lambda: _polars().DataFrame(X),
}


@pytest.mark.parametrize("kind", SHARED)
def test_float32_of_any_library_is_used_where_it_is(kind: str) -> None:
    given = SHARED[kind]()
    rows = as_float32("vectors", given)
    assert_same_bits(rows, X)
    if "polars" not in kind:  # polars moves numbers into its own memory when it is given them
        assert np.shares_memory(rows, X)
    else:
        assert np.shares_memory(rows, as_float32("vectors", given))


@pytest.mark.parametrize("kind", COPIED)
def test_other_forms_of_the_same_numbers_are_the_same(kind: str) -> None:
    assert_same_bits(as_float32("vectors", COPIED[kind]()), X)


def test_a_part_of_an_arrow_array_is_that_part() -> None:
    for part in (_fixed()[2:5], _fixed().cast(_arrow().list_(_arrow().float32()))[2:5]):
        assert_same_bits(as_float32("vectors", part), X[2:5])
    assert as_float32("vectors", _fixed()[:0]).shape == (0, 4)


@pytest.mark.parametrize(
    "make", [lambda: _torch().from_numpy(np.round(X)).bfloat16(), _bfloat16], ids=["torch", "NumPy"]
)
def test_bfloat16_becomes_float32_without_rounding(make: Callable[[], Any]) -> None:
    assert_same_bits(as_float32("vectors", make()), np.round(X))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "lists of two lengths": (
        lambda: [[1, 2], [1]],
        "vectors have different lengths: number 0 has 2 values, number 1 has 1",
    ),
    "arrays of two lengths": (lambda: [X[0], X[0, :3]], "number 0 has 4 values, number 1 has 3"),
    "Arrow lists of two lengths": (
        lambda: _arrow().array([[1.0], [1.0, 2.0]]),
        "vectors have different lengths: number 0 has 1 values, number 1 has 2",
    ),
    "chunks of two lengths": (
        lambda: _arrow().chunked_array([[[1.0]], [[1.0, 2.0]]]),
        "vectors have different lengths: number 0 has 1 values, number 1 has 2",
    ),
    "Arrow without a vector": (
        lambda: _arrow().array([[1.0], None]),
        "vectors 1 is missing (null)",
    ),
    "Arrow without a value": (
        lambda: _arrow().array([[1.0, None], [2.0, 3.0]]),
        "a value of vectors 1 is missing (null)",
    ),
    "Arrow strings": (
        lambda: _arrow().array([["a"]]),
        "must be numbers (float32 is used), got Arrow type string",
    ),
    "two columns of lists": (
        lambda: _arrow().table({"a": [[1.0]], "b": [[1.0]]}),
        "found a, b: give the column",
    ),
    "pandas without a vector": (
        lambda: _pandas().Series([X[0], None]),
        "vectors 1 is missing",
    ),
    "pandas strings": (
        lambda: _pandas().Series(["a", "b"]),
        "vectors 0 is str, an array was expected",
    ),
    "pandas frame with a hole": (
        lambda: _pandas().DataFrame({"a": [1.0, None]}),
        "vectors have missing values",
    ),
    "polars lists of two lengths": (
        lambda: _polars().Series([[1.0], [1.0, 2.0]]),
        "vectors have different lengths",
    ),
    "polars without a vector": (
        lambda: _polars().Series([[1.0], None]),
        "vectors 1 is missing (null)",
    ),
    "masked values": (lambda: np.ma.masked_array(X, X > 0), "vectors have masked values"),
    "another device": (
        lambda: OnlyDLPack(X, (2, 0)),
        "vectors are on another device (DLPack type 2, number 0): copy them to the memory",
    ),
    "a dtype without NumPy": (
        lambda: OnlyDLPack(_torch().zeros(2, 4).bfloat16()),
        "convert them to NumPy or to float32 first",
    ),
    "torch sparse": (lambda: _torch().eye(3).to_sparse(), "vectors are sparse"),
    "torch meta": (lambda: _torch().eye(3, device="meta"), "meta device, which has no values"),
    "polars query": (
        lambda: _polars().DataFrame({"v": X.tolist()}).lazy(),
        "vectors are a query of polars that has not run: give .collect()",
    ),
    "a gradient behind DLPack": (
        lambda: OnlyDLPack(_torch().zeros(2, 4, requires_grad=True)),
        "convert them to NumPy or to float32 first",
    ),
    "scipy sparse": (
        lambda: pytest.importorskip("scipy.sparse", reason="needs scipy").csr_matrix(X),
        "vectors are sparse, dense ones are searched: give .toarray()",
    ),
    "complex": (lambda: X.astype(complex), "vectors must be numbers (float32 is used)"),
    "text": (lambda: "abc", "vectors must be numbers (float32 is used)"),
    "nothing": (lambda: None, "vectors must be numbers (float32 is used)"),
    "bytes": (lambda: b"abc", "in an array or a list, got bytes"),
    "a dict": (lambda: {"a": [1.0]}, "in an array or a list, got dict"),
    "a set": (lambda: {1.0, 2.0}, "in an array or a list, got set"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_used_is_refused_in_our_words(kind: str) -> None:
    make, text = REFUSED[kind]
    with pytest.raises((TypeError, ValueError)) as caught:
        as_float32("vectors", make())
    assert text in str(caught.value)


def test_all_doors_take_them(tmp_path: Path) -> None:
    """add and upsert of index and database, search, normalize and match, and pieces of a source."""
    torch, expected = _torch(), expected_hits(X[:2], X, 3)
    index = hiernorm.Index(4)
    index.add(torch.from_numpy(X).requires_grad_())
    database = hiernorm.Database.create(tmp_path / "db", 4)
    database.add(_fixed())
    pieces = hiernorm.Database.create(tmp_path / "pieces", 4)
    pieces.add(_framed(_fixed()).to_reader(max_chunksize=2))
    lists = hiernorm.Index(4)
    lists.upsert(_polars().Series("v", X.tolist()))
    for found in (index, database, pieces, lists):
        for queries in (_pandas().Series(list(X[:2])), OnlyDLPack(X[:2]), _fixed()[:2]):
            assert_same_hits(found.search(queries, 3), expected)
    normal = hiernorm.normalize(X, 2, 0.125)
    assert_same_bits(hiernorm.normalize(_fixed(), 2, 0.125), normal)
    assert_same_bits(hiernorm.normalize(torch.from_numpy(X).requires_grad_(), 2, 0.125), normal)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    matched = hiernorm.match_descriptors(_pandas().Series(list(unit)), torch.from_numpy(unit))
    right = hiernorm.match_descriptors(unit, unit)
    np.testing.assert_array_equal(matched.pairs, right.pairs)
    assert len(right.pairs) == len(X)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ({1, 2}, "ids are a set, which has no order: give sorted(ids)"),
        ([None, 1], "ids must be integers (int64 is used), got NoneType"),
        (["a", "b"], "got dtype <U1: see string_keys=True"),
        ([0.5, 1.5], "ids must be integers (int64 is used), got dtype float64"),
    ],
)
def test_ids_that_are_none_are_refused_in_our_words(ids: Any, text: str) -> None:
    index = hiernorm.Index(4)
    index.add(X)
    for act in (
        lambda: index.add(X[:2], ids=ids),
        lambda: index.delete(ids),
        lambda: index.search(X, 1, where=ids),
    ):
        with pytest.raises(TypeError) as caught:
            act()
        assert text in str(caught.value) or "ids are integers in this index" in str(caught.value)
    assert len(index) == len(X)


def test_missing_ids_are_named() -> None:
    for ids in (_arrow().array([1, None]), _polars().Series([1, None])):
        with pytest.raises(ValueError, match=r"ids have missing values \(null\)"):
            hiernorm.Index(4).add(X[:2], ids=ids)


@pytest.mark.parametrize("kind", ["bytes", "a dict", "a set"])
def test_what_is_no_source_of_vectors_is_not_read_as_one(kind: str, tmp_path: Path) -> None:
    make, text = REFUSED[kind]
    for found in (hiernorm.Index(4), hiernorm.Database.create(tmp_path / "db", 4)):
        with pytest.raises(TypeError) as caught:
            found.add(make())
        assert text in str(caught.value)


def test_the_engine_needs_none_of_these_libraries() -> None:
    hidden = dict.fromkeys(["pyarrow", "pandas", "polars", "torch"])
    with mock.patch.dict(sys.modules, hidden):
        assert_same_bits(as_float32("vectors", X.tolist()), X)
        index = hiernorm.Index(4)
        index.add(X)
        assert index.search(X[:1], 1).ids.tolist() == [[int(np.argmax(X @ X[0]))]]

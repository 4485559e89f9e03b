"""Bad input is refused with a text that says what was expected, and changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hiernorm
from hiernorm.reference import Float32Array
from support import KINDS, assert_same_hits, filled, hn_rows, make_index, raises_text

D, MAJOR = 8, 3
NAN, INF = float("nan"), float("inf")


def _with(value: float, row: int = 2, dimension: int = 5) -> Float32Array:
    rows = hn_rows(4, D, MAJOR, seed=9)
    rows[row, dimension] = value
    return rows


BAD_ROWS = {
    "nan": (
        _with(NAN),
        ValueError,
        "{} row 2, dimension 5 is NaN; all values must be finite float32",
    ),
    "infinity": (
        _with(INF, row=0),
        ValueError,
        "{} row 0, dimension 5 is infinite; all values must be finite float32",
    ),
    "minus-infinity": (
        _with(-INF, dimension=7),
        ValueError,
        "{} row 2, dimension 7 is infinite; all values must be finite float32",
    ),
    "overflow": (
        np.where(np.eye(4, D) > 0, 1e39, 1.0),
        ValueError,
        "{} row 0, dimension 0 is infinite; all values must be finite float32",
    ),
    "too-narrow": (np.ones((2, 7)), ValueError, "{} have 7 dimensions, the index has 8"),
    "too-wide": (np.ones(9), ValueError, "{} have 9 dimensions, the index has 8"),
    "no-dimensions": (np.ones((2, 0)), ValueError, "{} have 0 dimensions, the index has 8"),
    "empty-list": ([], ValueError, "{} have 0 dimensions, the index has 8"),
    "scalar": (
        np.float32(1),
        ValueError,
        "{} must have shape (n, d) or (d,), got 0 dimensions with shape ()",
    ),
    "3-d": (
        np.ones((2, 1, 8)),
        ValueError,
        "{} must have shape (n, d) or (d,), got 3 dimensions with shape (2, 1, 8)",
    ),
    "str": (np.full((1, 8), "a"), TypeError, "{} must be numbers (float32 is used), got dtype <U1"),
    "complex": (
        np.ones((1, 8), complex),
        TypeError,
        "{} must be numbers (float32 is used), got dtype complex128",
    ),
    "object": (
        np.ones((1, 8), object),
        TypeError,
        "{} must be numbers (float32 is used), got dtype object",
    ),
    "bool": (
        np.ones((1, 8), bool),
        TypeError,
        "{} must be numbers (float32 is used), got dtype bool",
    ),
    "none": (
        None,
        TypeError,
        "{} must be numbers (float32 is used) in an array or a list, got NoneType",
    ),
}
ZERO = np.concatenate([hn_rows(2, D, MAJOR), np.zeros((1, D), np.float32)])


def assert_unchanged_by(
    index: hiernorm.Index, call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    """The call raises exactly this, and the index answers as before."""
    queries = hn_rows(3, D, MAJOR, seed=5)
    entries, digest, hits = len(index), index.digest, index.search(queries, 4)
    with raises_text(error, text):
        call()
    assert len(index) == entries
    assert index.digest == digest
    assert_same_hits(index.search(queries, 4), hits)


@pytest.mark.parametrize("entries", [0, 20])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_vectors_are_not_added(bad: str, kind: str, entries: int) -> None:
    values, error, text = BAD_ROWS[bad]
    index = make_index(kind, D, MAJOR)
    index.add(hn_rows(entries, D, MAJOR))
    assert_unchanged_by(index, lambda: index.add(values), error, text.format("vectors"))
    index.add(hn_rows(2, D, MAJOR, seed=3))
    assert len(index) == entries + 2


@pytest.mark.parametrize("entries", [0, 20])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_queries_are_not_answered(bad: str, kind: str, entries: int) -> None:
    values, error, text = BAD_ROWS[bad]
    index = make_index(kind, D, MAJOR)
    index.add(hn_rows(entries, D, MAJOR))
    for ask in (lambda: index.search(values), lambda: index.range(values, 0.5)):
        assert_unchanged_by(index, ask, error, text.format("queries"))


@pytest.mark.parametrize("entries", [0, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cosine_of_a_zero_vector_is_refused(kind: str, entries: int) -> None:
    index = make_index(kind, D, MAJOR, metric="cosine")
    index.add(hn_rows(entries, D, MAJOR))
    text = "{} row 2 is a zero vector; the cosine metric needs a direction"
    assert_unchanged_by(index, lambda: index.add(ZERO), ValueError, text.format("vectors"))
    for ask in (lambda: index.search(ZERO), lambda: index.range(ZERO, 0.5)):
        assert_unchanged_by(index, ask, ValueError, text.format("queries"))


def _searching(**options: Any) -> Callable[[hiernorm.Index], Any]:
    return lambda index: index.search(np.ones(D), **options)


def _ranging(threshold: Any, **options: Any) -> Callable[[hiernorm.Index], Any]:
    return lambda index: index.range(np.ones(D), threshold, **options)


def _adding(ids: Any, rows: int = 2) -> Callable[[hiernorm.Index], Any]:
    return lambda index: index.add(np.ones((rows, D)), ids=ids)


BAD_BETA = "beta must be from 0 to alpha = 0.125, got {}"
BAD_CALLS: list[tuple[str, Callable[[hiernorm.Index], Any], type[Exception], str]] = [
    ("k=0", _searching(k=0), ValueError, "k must be at least 1, got 0"),
    ("k=-1", _searching(k=-1), ValueError, "k must be at least 1, got -1"),
    ("k=1.0", _searching(k=1.0), TypeError, "k must be an integer, got float"),
    ("k=None", _searching(k=None), TypeError, "k must be an integer, got NoneType"),
    ("k=2**31", _searching(k=2**31), ValueError, f"k must be at most {2**31 - 1}, got {2**31}"),
    ("k=2**63", _searching(k=2**63), ValueError, f"k must be at most {2**31 - 1}, got {2**63}"),
    ("k=2**70", _searching(k=2**70), ValueError, f"k must be at most {2**31 - 1}, got {2**70}"),
    ("threads=0", _searching(threads=0), ValueError, "threads must be at least 1, got 0"),
    ("threads=2.0", _searching(threads=2.0), TypeError, "threads must be an integer, got float"),
    ("batch=0", _searching(batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    ("beta<0", _searching(beta=-0.1), ValueError, BAD_BETA.format(-0.1)),
    ("beta>alpha", _searching(beta=0.2), ValueError, BAD_BETA.format(0.2)),
    ("beta=nan", _searching(beta=NAN), ValueError, BAD_BETA.format(NAN)),
    ("threshold=x", _ranging("x"), TypeError, "threshold must be a number, got str"),
    ("threshold=None", _ranging(None), TypeError, "threshold must be a number, got NoneType"),
    (
        "threads=10**30",
        _searching(threads=10**30),
        ValueError,
        f"threads must be at most {2**62}, got {10**30}",
    ),
    ("threshold=nan", _ranging(NAN), ValueError, "threshold must be finite, got nan"),
    ("threshold=inf", _ranging(INF), ValueError, "threshold must be finite, got inf"),
    ("range-threads=0", _ranging(0.5, threads=0), ValueError, "threads must be at least 1, got 0"),
    ("few-ids", _adding([100]), ValueError, "2 vectors need 2 ids, got 1"),
    ("many-ids", _adding([100, 101, 102]), ValueError, "2 vectors need 2 ids, got 3"),
    ("no-ids", _adding([]), ValueError, "2 vectors need 2 ids, got 0"),
    (
        "float-ids",
        _adding([100.0, 101.0]),
        TypeError,
        "ids must be integers (int64 is used), got dtype float64",
    ),
    (
        "bool-ids",
        _adding([True, False]),
        TypeError,
        "ids must be integers (int64 is used), got dtype bool",
    ),
    ("large-ids", _adding([100, 2**70]), ValueError, f"ids must fit int64, got {2**70}"),
    ("2-d-ids", _adding([[100], [101]]), ValueError, "ids must have shape (n,), got (2, 1)"),
    ("ids-of-nothing", _adding([100], rows=0), ValueError, "0 vectors need 0 ids, got 1"),
    (
        "float-reconstruct",
        lambda index: index.reconstruct([1.0]),
        TypeError,
        "ids must be integers (int64 is used), got dtype float64",
    ),
    (
        "2-d-reconstruct",
        lambda index: index.reconstruct([[1]]),
        ValueError,
        "ids must have shape (n,), got (1, 1)",
    ),
]


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "hn-paper", "hn-exhaustive"])
@pytest.mark.parametrize(
    ("call", "error", "text"), [bad[1:] for bad in BAD_CALLS], ids=[bad[0] for bad in BAD_CALLS]
)
def test_bad_arguments_are_refused(
    call: Callable[[hiernorm.Index], Any], error: type[Exception], text: str, kind: str
) -> None:
    index = filled(kind, hn_rows(20, D, MAJOR), MAJOR)
    assert_unchanged_by(index, lambda: call(index), error, text)


def test_beta_is_for_hn_vectors() -> None:
    index = filled("plain-cascade", hn_rows(20, D, MAJOR), None)
    text = "beta needs an index with alpha: soft mode is for HN vectors"
    assert_unchanged_by(index, lambda: index.search(np.ones(D), beta=0.1), ValueError, text)


def test_beta_is_for_inner_products() -> None:
    index = filled("hn-cascade", hn_rows(20, D, MAJOR), MAJOR, metric="l2")
    text = "beta is a share of inner products: soft mode is not for metric l2"
    assert_unchanged_by(index, lambda: index.search(np.ones(D), beta=0.1), ValueError, text)


BAD_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dim": 1}, ValueError, "dim must be at least 2, got 1"),
    ({"dim": -3}, ValueError, "dim must be at least 2, got -3"),
    ({"dim": 8.0}, TypeError, "dim must be an integer, got float"),
    (
        {"alpha": 0.1},
        ValueError,
        "alpha needs major: the K that the vectors were normalised with",
    ),
    ({"major": 3, "alpha": 1.0}, ValueError, "alpha must be in [0, 1), got 1.0"),
    ({"major": 3, "alpha": -0.1}, ValueError, "alpha must be in [0, 1), got -0.1"),
    ({"major": 3, "alpha": NAN}, ValueError, "alpha must be in [0, 1), got nan"),
    ({"major": 0}, ValueError, "major must be at least 1, got 0"),
    ({"major": 8}, ValueError, "major must be from 1 to 7 for 8 dimensions, got 8"),
    ({"major": 2.0}, TypeError, "major must be an integer, got float"),
    ({"metric": "l1"}, ValueError, "metric must be one of ip, cosine, l2, got 'l1'"),
    (
        {"engine": "hnsw"},
        ValueError,
        "engine must be one of cascade, paper, exhaustive, flat, got 'hnsw'",
    ),
    (
        {"engine": "paper"},
        ValueError,
        "engine 'paper' needs alpha: Algorithm 1 searches HN vectors",
    ),
    (
        {"major": 4, "alpha": 0.125, "metric": "l2", "engine": "paper"},
        ValueError,
        "engine 'paper' is Algorithm 1, by inner products: metric l2 is not",
    ),
    ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
    ({"threads": "2"}, TypeError, "threads must be an integer, got str"),
]


@pytest.mark.parametrize(("parameters", "error", "text"), BAD_PARAMETERS)
def test_bad_parameters_are_refused(
    parameters: dict[str, Any], error: type[Exception], text: str
) -> None:
    with raises_text(error, text):
        hiernorm.Index(**{"dim": 8, **parameters})


@pytest.mark.parametrize("name", ["alpha", "beta", "threshold"])
def test_numbers_that_are_no_numbers_are_refused(name: str) -> None:
    index = filled("hn-cascade", hn_rows(20, D, MAJOR), MAJOR)
    calls = {
        "alpha": lambda: hiernorm.Index(D, major=MAJOR, alpha=[0.1]),  # type: ignore[arg-type]
        "beta": lambda: index.search(np.ones(D), beta="0.1"),  # type: ignore[arg-type]
        "threshold": lambda: index.range(np.ones(D), "0.1"),  # type: ignore[arg-type]
    }
    came = "list" if name == "alpha" else "str"
    with raises_text(TypeError, f"{name} must be a number, got {came}"):
        calls[name]()


@pytest.mark.skipif(sys.maxsize < 2**62, reason="needs addresses of 64 bits")
def test_hits_beyond_any_memory_are_no_crash() -> None:
    """2**48 bytes of ids: more than a process can address, and nothing to fill them with."""
    index = filled("hn-cascade", hn_rows(20, D, MAJOR), MAJOR)
    with pytest.raises(ValueError, match="but there are 20 entries: ask for at most 20 hits"):
        index.search(np.ones((2**14, D), np.float32), k=2**31 - 1)

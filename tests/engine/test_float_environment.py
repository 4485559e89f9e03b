"""The caller's float environment changes no answer: neither rounding mode nor flushed denormals."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
import pytest

import float_environment
from float_environment import flushed_denormals, rounding_mode
from hiernorm.reference import Float32Array
from support import (
    KINDS,
    assert_same_hits,
    every_kind_and_metric,
    expected_hits,
    filled,
    hn_rows,
    make_index,
    random_rows,
)

pytestmark = float_environment.supported

MAJOR = 6
ENVIRONMENTS = {
    "upward": lambda: rounding_mode(float_environment.FE_UPWARD),
    "downward": lambda: rounding_mode(float_environment.FE_DOWNWARD),
    "toward-zero": lambda: rounding_mode(float_environment.FE_TOWARDZERO),
    "flushed": flushed_denormals,
}


def _changed(environment: str) -> AbstractContextManager[None]:
    return ENVIRONMENTS[environment]()


def test_the_rounding_mode_is_really_changed() -> None:
    three = np.float64(3)
    nearest = 1 / three
    with rounding_mode(float_environment.FE_UPWARD):
        upward = 1 / three
    assert upward > nearest
    assert 1 / three == nearest


def test_denormals_are_really_flushed() -> None:
    tiny = np.full(64, 1e-40, np.float32)
    with flushed_denormals():
        flushed = tiny * np.float32(1)
    assert not flushed.any()
    assert (tiny * np.float32(1)).all()


def _data(environment: str, scale: float = 1e-40) -> tuple[Float32Array, Float32Array]:
    """Denormals where they are flushed, near ties where rounding is changed."""
    if environment == "flushed":
        factor = np.float32(scale)
        return random_rows(400, 24) * factor, random_rows(5, 24, seed=1) * factor
    x = hn_rows(400, 24, MAJOR)
    x[200:] = np.nextafter(x[:200], np.float32(1))
    return x, np.concatenate([x[:3], hn_rows(2, 24, MAJOR, seed=1)])


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@every_kind_and_metric
def test_searching_in_a_changed_environment(
    isa: str, kind: str, metric: str, environment: str
) -> None:
    x, queries = _data(environment)
    index = filled(kind, x, MAJOR, metric=metric)
    with _changed(environment):
        hits = index.search(queries, 10)
        many = index.search(queries, 10, threads=3, batch_size=1)
    expected = expected_hits(queries, x, 10, metric)
    assert_same_hits(hits, expected)
    assert_same_hits(many, expected)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@every_kind_and_metric
def test_adding_in_a_changed_environment(kind: str, metric: str, environment: str) -> None:
    """Of rows around 1e-38, some values are denormal and some are not."""
    for scale in (1e-38, 1e-40):
        x, queries = _data(environment, scale)
        index = make_index(kind, 24, MAJOR, metric=metric)
        with _changed(environment):
            index.add(x[:300])
            index.add(x[300:])
        assert_same_hits(index.search(queries, 10), expected_hits(queries, x, 10, metric))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_optimizing_in_a_changed_environment(kind: str, environment: str) -> None:
    x, queries = _data(environment)
    index = filled(kind, x, MAJOR)
    with _changed(environment):
        index.optimize()
    assert_same_hits(index.search(queries, 10), expected_hits(queries, x, 10))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_ranges_in_a_changed_environment(kind: str, environment: str) -> None:
    x, queries = _data(environment)
    index = filled(kind, x, MAJOR)
    threshold = float(expected_hits(queries, x, 10)[1][0, -1])
    expected = index.range(queries, threshold)
    with _changed(environment):
        hits = index.range(queries, threshold)
    assert len(expected.ids)
    np.testing.assert_array_equal(hits.ids, expected.ids)
    np.testing.assert_array_equal(hits.scores, expected.scores)


def test_the_environment_of_the_caller_is_restored() -> None:
    x, queries = _data("upward")
    with rounding_mode(float_environment.FE_UPWARD):
        expected = 1 / np.float64(3)
        filled("hn-cascade", x, MAJOR).search(queries, 10)
        assert 1 / np.float64(3) == expected
    assert 1 / np.float64(3) < expected

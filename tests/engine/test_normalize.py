"""Hierarchical Normalization: Eq. (1), the same bits everywhere, and rows that have no answer."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import hiernorm
from hiernorm import reference
from support import assert_same_bits, raises_text, random_rows

MAJOR, ALPHA = 5, 0.125


@pytest.mark.parametrize("alpha", [0.01, 0.125, 0.5, 0.999])
@pytest.mark.parametrize(("d", "major"), [(2, 1), (12, 5), (100, 1), (100, 99), (130, 33)])
def test_energy_is_split_up_to_float32_rounding(d: int, major: int, alpha: float) -> None:
    rows = hiernorm.normalize(random_rows(50, d), major, alpha)
    rounding = 2.0**-23
    for part, energy in ((rows[:, :major], 1 - alpha), (rows[:, major:], alpha)):
        norms = reference.canonical_norm(part)
        assert (np.abs(norms - np.sqrt(energy)) <= rounding * np.sqrt(energy)).all()


def test_directions_are_kept() -> None:
    features = np.float32([[3, 4, 0, 2]])
    major, minor = np.sqrt(0.75) / 5, 0.25
    expected = np.array([[3 * major, 4 * major, 0, 2 * minor]])
    np.testing.assert_array_almost_equal_nulp(
        hiernorm.normalize(features, 2, 0.25), expected.astype(np.float32), nulp=1
    )


@pytest.mark.parametrize("minor", [0.0, 1.0])
def test_alpha_zero_gives_an_exactly_zero_minor(minor: float) -> None:
    features = random_rows(4, 12)
    features[:, MAJOR:] *= minor
    rows = hiernorm.normalize(features, MAJOR, 0)
    assert_same_bits(rows[:, MAJOR:], np.zeros((4, 7), np.float32))
    assert rows[:, :MAJOR].any(axis=1).all()


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e30, 5e37])
def test_any_finite_scale_is_normalised(scale: float) -> None:
    rows = hiernorm.normalize(random_rows(20, 12) * np.float32(scale), MAJOR, ALPHA)
    assert (np.abs(reference.canonical_norm(rows) - 1) < 2.0**-22).all()


def test_a_vector_is_normalised_like_a_row() -> None:
    features = random_rows(3, 12)
    assert_same_bits(hiernorm.normalize(features[1], MAJOR), hiernorm.normalize(features, MAJOR)[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint16, np.int64, ">f4"])
def test_other_types_are_rounded_to_float32_first(dtype: str) -> None:
    features = (random_rows(5, 12) * 40 + 90).astype(dtype)
    assert_same_bits(
        hiernorm.normalize(features, MAJOR),
        hiernorm.normalize(features.astype(np.float32), MAJOR),
    )


def test_memory_layout_does_not_matter() -> None:
    features = random_rows(6, 24)
    expected = hiernorm.normalize(features[::2, ::2].copy(), MAJOR)
    assert_same_bits(hiernorm.normalize(features[::2, ::2], MAJOR), expected)
    assert_same_bits(hiernorm.normalize(np.asfortranarray(features[::2, ::2]), MAJOR), expected)
    assert_same_bits(hiernorm.normalize(features[::2, ::2].tolist(), MAJOR), expected)


def test_the_input_is_left_alone() -> None:
    features = random_rows(3, 12)
    before = features.copy()
    hiernorm.normalize(features, MAJOR)
    assert_same_bits(features, before)


def test_no_rows_give_no_rows() -> None:
    assert hiernorm.normalize(np.zeros((0, 12)), MAJOR).shape == (0, 12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_a_row_that_is_not_finite_is_named(value: float) -> None:
    features = random_rows(4, 12).astype(np.float64)
    features[2, 7] = value
    text = "features row 2 has NaN or infinity (as float32); all values must be finite"
    with raises_text(ValueError, text):
        hiernorm.normalize(features, MAJOR)


@pytest.mark.parametrize(("part", "name"), [(slice(0, 5), "major"), (slice(5, 12), "minor")])
def test_a_row_without_a_direction_is_named(part: slice, name: str) -> None:
    features = random_rows(4, 12)
    features[[1, 3], part] = 0
    text = f"features row 1 has a {name} of zero norm, which has no direction to keep"
    with raises_text(ValueError, text):
        hiernorm.normalize(features, MAJOR)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
def test_alpha_out_of_range_is_refused(alpha: float) -> None:
    with raises_text(ValueError, f"alpha must be in [0, 1), got {alpha}"):
        hiernorm.normalize(random_rows(2, 12), MAJOR, alpha)


@pytest.mark.parametrize("major", [12, 13])
def test_major_out_of_range_is_refused(major: int) -> None:
    text = f"major must be from 1 to 11 for 12 dimensions, got {major}"
    with raises_text(ValueError, text):
        hiernorm.normalize(random_rows(2, 12), major)


def test_major_below_one_or_no_integer_is_refused() -> None:
    with raises_text(ValueError, "major must be at least 1, got 0"):
        hiernorm.normalize(random_rows(2, 12), 0)
    with raises_text(TypeError, "major must be an integer, got float"):
        hiernorm.normalize(random_rows(2, 12), 5.0)  # type: ignore[arg-type]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("major", "alpha", "sha256"),
    [
        (16, 0.125, "2e0fa801b01d9bbc4f629610fb96349ff126f067c99686739841595ac549db6b"),
        (1, 0.5, "aaaed161a6c2957dd5f8af02ec9f1f1d22488ec2e264ba4c346ed6541b4e0275"),
        (77, 0.3, "0c069c2d908a431a98e865e6f0ae544391171d8ce1f3527c808f46de642007d3"),
        (33, 0.0, "24bfae37b82c247bc731a029b3fe25ee221ef3c7f17314561b4ef43ec4536771"),
    ],
)
def test_golden_bits(major: int, alpha: float, sha256: str) -> None:
    """The promise of the same bits on every machine: integers in, known bits out."""
    features = (np.arange(20 * 80).reshape(20, 80) * 7919 % 2003 - 1001).astype(np.float32)
    rows = hiernorm.normalize(features, major, alpha)
    assert hashlib.sha256(rows.astype("<f4").tobytes()).hexdigest() == sha256

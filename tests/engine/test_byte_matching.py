"""Byte vectors: the native matches equal the specification, whatever the vectors are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm import _core
from hiernorm.byte_matching import ByteDescriptors, ByteRotation, match_bytes
from hiernorm.reference.byte_matches import (
    SQUARED_NORM,
    angle_limits,
    least_product,
    product_angles,
)
from hiernorm.reference.byte_matches import match_bytes as match_by_reference


def sift_like(rng, n: int, dim: int = 128):
    """Random vectors of length about 512, all in one octant as SIFT's are."""
    rows = np.sqrt(rng.dirichlet(np.full(dim, 0.4), n))
    return np.minimum(np.rint(512 * rows), 255).astype(np.uint8)


def views(rng, n: int, m: int, noise: int = 12):
    """Two sets that share some vectors, up to noise, with exact repetitions in both."""
    a = sift_like(rng, n)
    b = sift_like(rng, m)
    shared = min(n, m) // 2
    b[:shared] = np.clip(a[:shared] + rng.integers(-noise, noise + 1, (shared, 128)), 0, 255)
    if n > 8 and m > 8:
        a[n // 2] = a[3]
        b[m // 2] = b[1]
        b[-1] = a[-1]
    return a, b


def assert_as_specified(a, b, **options):
    rotation = ByteRotation(np.concatenate((a, b)))
    left, right = ByteDescriptors(a, rotation), ByteDescriptors(b, rotation)
    expected = match_by_reference(a, b, **options)
    for threads in (1, 3):
        assert_array_equal(match_bytes(left, right, threads=threads, **options).pairs, expected)
    return expected


@pytest.mark.parametrize(
    "sizes", [(1, 1), (1, 40), (40, 1), (17, 33), (64, 16), (300, 500), (1100, 700)]
)
def test_matches_are_those_of_the_specification(sizes, isa):
    a, b = views(np.random.default_rng(sum(sizes)), *sizes)
    found = assert_as_specified(a, b)
    if min(sizes) > 100:
        assert len(found) > 50


@pytest.mark.parametrize("cross_check", [False, True])
@pytest.mark.parametrize(("max_ratio", "max_distance"), [(0.6, 0.3), (0.95, 1.5), (1.0, 9), (2, 9)])
def test_every_option_is_as_specified(max_ratio, max_distance, cross_check):
    a, b = views(np.random.default_rng(5), 200, 300)
    assert_as_specified(
        a, b, max_ratio=max_ratio, max_distance=max_distance, cross_check=cross_check
    )


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 70), st.integers(1, 140))
def test_vectors_that_are_no_descriptors_are_matched_as_specified(seed, n, m, dim):
    rng = np.random.default_rng(seed)
    top = int(rng.choice([1, 3, 255]))
    a, b = (rng.integers(0, top + 1, (size, dim), dtype=np.uint8) for size in (n, m))
    for name in hiernorm.available_isas():
        before = hiernorm.isa()
        _core.use_isa(name)
        ratio, distance = float(rng.uniform(0.5, 1.2)), float(rng.choice([0.4, 1.1, 1.6]))
        assert_as_specified(a, b, max_ratio=ratio, max_distance=distance)
        _core.use_isa(before)


def test_any_rotation_gives_the_same_matches():
    a, b = views(np.random.default_rng(1), 150, 150)
    of_noise = ByteRotation(np.random.default_rng(2).integers(0, 256, (200, 128), dtype=np.uint8))
    found = match_bytes(ByteDescriptors(a, of_noise), ByteDescriptors(b, of_noise))
    assert_array_equal(found.pairs, match_by_reference(a, b))


def test_most_products_are_not_computed():
    rng = np.random.default_rng(7)
    few = sift_like(rng, 40).astype(np.float64)
    a, b = (np.rint(rng.dirichlet(np.full(40, 0.1), 2000) @ few).astype(np.uint8) for _ in "ab")
    rotation = ByteRotation(a)
    found = match_bytes(ByteDescriptors(a, rotation), ByteDescriptors(b, rotation))
    assert found.products < 0.2 * len(a) * len(b)


def test_memory_grows_with_the_vectors_not_with_their_pairs():
    rows = sift_like(np.random.default_rng(0), 10_000)
    assert ByteDescriptors(rows).nbytes < 300 * len(rows)


def test_empty_sets_have_no_matches():
    rows = sift_like(np.random.default_rng(0), 5)
    rotation = ByteRotation(rows)
    for a, b in ((rows[:0], rows), (rows, rows[:0])):
        found = match_bytes(ByteDescriptors(a, rotation), ByteDescriptors(b, rotation))
        assert found.pairs.shape == (0, 2)


def test_no_angle_is_near_the_middle_of_two_floats():
    """So any float64 arc cosine, off by some units in the last place, rounds to the same table."""
    exact = np.arccos(np.arange(SQUARED_NORM) / SQUARED_NORM)
    rounded = exact.astype(np.float32)
    for side in (np.float32(-9), np.float32(9)):
        middle = (rounded.astype(np.float64) + np.nextafter(rounded, side)) / 2
        assert (np.abs(middle - exact) > 500 * np.spacing(exact)).all()


@pytest.mark.parametrize("ratio", [0.5, 0.8, 0.95, 1.0, 1.1])
def test_limits_say_what_the_comparison_of_angles_says(ratio):
    angles, limits = product_angles(), angle_limits(ratio)
    best = np.random.default_rng(0).integers(0, SQUARED_NORM + 1, 2000)
    for second in (limits[best], limits[best] + 1):
        inside = (second >= 0) & (second <= SQUARED_NORM)
        passes = angles[best[inside]] < np.float32(ratio) * angles[second[inside]]
        assert_array_equal(passes, second[inside] <= limits[best[inside]])
    assert (np.diff(limits) >= 0).all()


def test_the_least_product_is_the_first_within_the_distance():
    least = least_product(0.7)
    assert product_angles()[least] <= np.float32(0.7) < product_angles()[least - 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ByteDescriptors(np.zeros((2, 3), np.float32)), "must be uint8"),
        (lambda: ByteDescriptors(np.zeros(3, np.uint8)), r"shape \(n, d\)"),
        (
            lambda: ByteDescriptors(
                np.zeros((2, 3), np.uint8), ByteRotation(np.eye(4, dtype=np.uint8))
            ),
            "rows have 3 dimensions, the rotation has 4",
        ),
        (
            lambda: match_bytes(
                ByteDescriptors(np.eye(3, dtype=np.uint8)),
                ByteDescriptors(np.uint8([[9, 7, 1], [1, 0, 3]])),
            ),
            "different rotations",
        ),
        (lambda: angle_limits(0), "max_ratio must be above 0"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()

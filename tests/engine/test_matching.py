"""Matching: the pairs of kornia, of OpenCV and of the definition, whatever the sets look like."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiernorm
from hiernorm import _core
from hiernorm.matching import DescriptorSet, _find_split
from hiernorm.nearest_rows import nearest_rows, prefers_pass
from hiernorm.reference import canonical_scores
from support import assert_same_bits, expected_hits, raises_text

RATIO = 0.9


def two_views(n: int, m: int, dim: int = 128, *, major: int | None = None, seed: int = 0):
    """Unit rows of which some are noisy versions of each other."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((max(n, m), dim)) * np.linspace(2, 0.4, dim)
    a, b = (base + 0.5 * rng.standard_normal(base.shape) for _ in range(2))
    a, b = a[:n], b[rng.permutation(len(b))][:m]
    if major is not None:
        return hiernorm.normalize(a, major, 1 / 8), hiernorm.normalize(b, major, 1 / 8)
    return tuple((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (a, b))


def pairs_by_definition(a, b, mutual, ratio, min_score, metric):
    """Loops over the full matrix of canonical scores."""
    scores = np.stack([canonical_scores(row, b, metric) for row in a])
    order = np.argsort(-scores, axis=1, kind="stable")
    back = np.argsort(-scores, axis=0, kind="stable")
    unit = [np.float64(x) for x in (a, b)]
    if metric == "cosine":
        unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in unit]

    def passes(row, first, second, rows):
        near, far = (np.linalg.norm(row - rows[i]) for i in (first, second))
        return near <= ratio * far and far > 0

    pairs = []
    for i in range(len(a)):
        j = order[i, 0]
        keep = min_score is None or scores[i, j] >= min_score
        if mutual:
            keep &= back[0, j] == i
        if ratio is not None:
            keep &= bool(passes(unit[0][i], j, order[i, 1], unit[1]))
            if mutual:
                keep &= bool(passes(unit[1][j], back[0, j], back[1, j], unit[0]))
        if keep:
            pairs.append((i, j))
    return np.array(pairs, np.int64).reshape(-1, 2)


@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
@pytest.mark.parametrize("major", [None, 16])
@pytest.mark.parametrize("ratio", [None, RATIO])
@pytest.mark.parametrize("mutual", [False, True])
def test_pairs_are_those_of_the_definition(mutual, ratio, major, metric):
    a, b = two_views(90, 70, major=major)
    for min_score in (None, -0.4 if metric == "l2" else 0.8):
        found = hiernorm.match_descriptors(a, b, mutual, ratio, min_score, metric=metric)
        expected = pairs_by_definition(a, b, mutual, ratio, min_score, metric)
        np.testing.assert_array_equal(found.pairs, expected)
        assert 0 < len(found) < 90 or not (mutual or ratio or min_score)
        scores = [canonical_scores(a[i], b[j : j + 1], metric)[0] for i, j in found.pairs]
        assert_same_bits(found.scores, np.array(scores))


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 10**6), st.booleans())
def test_ties_go_to_the_lower_row(n, m, seed, mutual):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-1, 2, (count, 3)).astype(np.float32) for count in (n, m))
    found = hiernorm.match_descriptors(a, b, mutual, ratio=None)
    np.testing.assert_array_equal(found.pairs, pairs_by_definition(a, b, mutual, None, None, "ip"))


@pytest.mark.parametrize("sizes", [(400, 300), (300, 400)])
@pytest.mark.parametrize("major", [None, 16])
def test_pairs_are_those_of_kornia(sizes, major):
    feature = pytest.importorskip("kornia.feature", reason="needs hiernorm[kornia]")
    torch = pytest.importorskip("torch")
    a, b = two_views(*sizes, major=major)
    wide = [torch.from_numpy(x).double() for x in (a, b)]

    def same(theirs, ours, values):
        distances, pairs = theirs
        order = np.argsort(pairs[:, 0].numpy(), kind="stable")
        np.testing.assert_array_equal(pairs.numpy()[order], ours.pairs)
        np.testing.assert_allclose(distances.numpy()[order, 0], values, rtol=0, atol=1e-6)
        assert len(ours) > 50

    for mutual, theirs in ((False, feature.match_nn), (True, feature.match_mnn)):
        ours = hiernorm.match_descriptors(a, b, mutual=mutual, ratio=None)
        same(theirs(*wide), ours, np.sqrt(np.maximum(0, 2 - 2 * ours.scores)))
    for mutual, theirs in ((False, feature.match_snn), (True, feature.match_smnn)):
        ours = hiernorm.match_descriptors(a, b, mutual=mutual, ratio=RATIO)
        same(theirs(*wide, th=RATIO), ours, ours.ratios)


@pytest.mark.parametrize("major", [None, 16])
def test_pairs_are_those_of_opencv(major):
    cv2 = pytest.importorskip("cv2", reason="needs hiernorm[vision]")
    a, b = two_views(400, 300, major=major)
    plain = cv2.BFMatcher(cv2.NORM_L2)

    def listed(matches):
        return sorted((m.queryIdx, m.trainIdx) for m in matches)

    def ours(**options):
        return [tuple(pair) for pair in hiernorm.match_descriptors(a, b, **options).pairs.tolist()]

    assert ours(mutual=False, ratio=None) == listed(plain.match(a, b))
    assert ours(ratio=None) == listed(cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b))
    lowe = [m for m, n in plain.knnMatch(a, b, k=2) if m.distance <= RATIO * n.distance]
    assert ours(mutual=False, ratio=RATIO) == listed(lowe)


def test_descriptors_of_any_length_match_by_distance_as_in_opencv():
    cv2 = pytest.importorskip("cv2", reason="needs hiernorm[vision]")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 120, (300, 128)).astype(np.float32)
    b = np.clip(a[rng.permutation(300)] + rng.integers(-25, 26, a.shape), 0, 255)
    b = b.astype(np.float32)
    theirs = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
    ours = hiernorm.match_descriptors(a, b, ratio=None, metric="l2")
    assert sorted((m.queryIdx, m.trainIdx) for m in theirs) == [tuple(p) for p in ours.pairs]
    lowe = [m for m, n in cv2.BFMatcher().knnMatch(a, b, k=2) if m.distance <= 0.8 * n.distance]
    ours = hiernorm.match_descriptors(a, b, mutual=False, ratio=0.8, metric="l2")
    assert sorted((m.queryIdx, m.trainIdx) for m in lowe) == [tuple(p) for p in ours.pairs]


def test_threads_and_copies_change_no_bits():
    a, b = two_views(3000, 2500)
    expected = hiernorm.match_descriptors(a, b, ratio=RATIO, threads=1)
    for threads in (2, 5):
        other = hiernorm.match_descriptors(a, b, ratio=RATIO, threads=threads)
        np.testing.assert_array_equal(other.pairs, expected.pairs)
        assert_same_bits(other.scores, expected.scores)
        assert_same_bits(other.ratios, expected.ratios)


def test_equal_rows_never_pass_the_ratio_test():
    a, _ = two_views(20, 20)
    twice = np.concatenate((a, a))
    assert len(hiernorm.match_descriptors(a, twice, mutual=False, ratio=1.0)) == 0
    assert hiernorm.match_descriptors(a, twice, ratio=None).pairs.tolist() == [
        [i, i] for i in range(20)
    ]


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0)])
def test_an_empty_set_has_no_matches(n, m):
    found = hiernorm.match_descriptors(np.zeros((n, 8)), np.zeros((m, 8)), ratio=None)
    assert found.pairs.shape == (0, 2)
    assert len(found.scores) == len(found.ratios) == len(found) == 0


def test_the_ratio_test_needs_a_second_row():
    a, b = two_views(5, 1)
    assert len(hiernorm.match_descriptors(a, b, ratio=None)) == 1
    assert len(hiernorm.match_descriptors(a, b, ratio=1.0)) == 0


def test_the_ratio_test_of_both_directions_is_the_default():
    rng = np.random.default_rng(0)
    scene = rng.standard_normal((300, 128))
    a, b = (hiernorm.normalize(scene + 0.8 * rng.standard_normal(scene.shape)) for _ in range(2))
    found = hiernorm.match_descriptors(a, b).pairs
    np.testing.assert_array_equal(
        found, hiernorm.match_descriptors(a, b, mutual=True, ratio=0.9).pairs
    )
    assert 0 < len(found) < len(hiernorm.match_descriptors(a, b, ratio=None))


def test_hn_vectors_are_recognised():
    hn, plain = two_views(100, 1, major=16)[0], two_views(100, 1)[0]
    major, alpha = _find_split(hn)
    assert major == 16
    assert abs(alpha - 1 / 8) < 1e-6
    assert _find_split(plain) == (None, None)
    assert _find_split(hn[:1]) == (None, None)


def test_bad_input_has_its_error():
    good = np.eye(4, dtype=np.float32)
    match = hiernorm.match_descriptors
    with raises_text(ValueError, "a has 4 dimensions, b has 3"):
        match(good, np.eye(3))
    with raises_text(ValueError, "a must have the shape (n, d), got (4,)"):
        match(good[0], good)
    bad = good.copy()
    bad[2, 1] = np.nan
    with raises_text(ValueError, "b row 2 has NaN or infinity"):
        match(good, bad)
    with raises_text(ValueError, "ratio must be above 0 and at most 1, got 0"):
        match(good, good, ratio=0)
    with raises_text(ValueError, "min_score must be a number, got NaN"):
        match(good, good, min_score=float("nan"))
    with pytest.raises(ValueError, match=r"needs unit vectors, b row 0 has length 2: normalise"):
        match(good, 2 * good, ratio=0.8)
    with pytest.raises(ValueError, match="metric must be one of"):
        match(good, good, metric="hamming")


def test_memory_does_not_grow_with_the_product():
    """30,000 x 30,000 scores would fill 3.6 GB in float32."""
    resource = pytest.importorskip("resource", reason="needs a Unix system")
    assert resource
    code = """
import resource, numpy as np, hiernorm
x = np.random.default_rng(0).standard_normal((30_000, 128), dtype=np.float32)
x = hiernorm.normalize(x, 16, 1 / 64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = hiernorm.match_descriptors(x, x[::-1].copy())
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(found), (after - before) * 1024 // len(x))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    matches, bytes_per_row = map(int, done.stdout.split())
    assert matches == 30_000
    assert bytes_per_row < 4096


@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
@pytest.mark.parametrize("isa", hiernorm.available_isas())
def test_one_pass_over_all_pairs_has_the_bits_of_the_reference(metric, isa):
    rng = np.random.default_rng(3)
    before = hiernorm.isa()
    try:
        _core.use_isa(isa)
        for n, m, dim in ((2, 3, 2), (5, 40, 17), (97, 33, 128), (130, 150, 16), (200, 20, 5)):
            a, b = (rng.standard_normal((count, dim)).astype(np.float32) for count in (n, m))
            b[1] = b[0]  # no proof by float32 scores
            for k in (1, 2):
                there, back = nearest_rows(a, b, k, metric, both=True, threads=2)
                for found, queries, rows in ((there, a, b), (back, b, a)):
                    ids, scores = expected_hits(queries, rows, k, metric)
                    np.testing.assert_array_equal(found.ids, ids)
                    assert_same_bits(found.scores, scores)
    finally:
        _core.use_isa(before)


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1.0, 1e15, 3e38])
@pytest.mark.parametrize("metric", ["ip", "l2"])
def test_one_pass_is_exact_at_any_scale(metric, scale):
    rng = np.random.default_rng(4)
    a, b = ((rng.uniform(-1, 1, (count, 20)) * scale).astype(np.float32) for count in (40, 50))
    there, back = nearest_rows(a, b, 2, metric, both=True)
    for found, queries, rows in ((there, a, b), (back, b, a)):
        ids, scores = expected_hits(queries, rows, 2, metric)
        np.testing.assert_array_equal(found.ids, ids)
        assert_same_bits(found.scores, scores)


@pytest.mark.parametrize("major", [None, 16])
@pytest.mark.parametrize("ratio", [None, RATIO])
def test_large_sets_are_matched_by_an_index_to_the_same_bits(monkeypatch, major, ratio):
    a, b = two_views(300, 250, major=major)
    expected = hiernorm.match_descriptors(a, b, ratio=ratio)
    monkeypatch.setattr("hiernorm.matching.PLAIN_PAIRS", 0)
    monkeypatch.setattr("hiernorm.matching.HN_PAIRS", 0)
    found = hiernorm.match_descriptors(a, b, ratio=ratio)
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    assert_same_bits(found.scores, expected.scores)
    assert_same_bits(found.ratios, expected.ratios)


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("ratio", [None, RATIO])
def test_large_sets_whose_codes_do_not_pay_are_matched_by_a_pass(monkeypatch, ratio, mutual):
    a, b = two_views(300, 250)
    expected = hiernorm.match_descriptors(a, b, mutual, ratio)
    monkeypatch.setattr("hiernorm.matching.PLAIN_PAIRS", 0)
    passes = []

    def counted(*args, **kwargs):
        passes.append(args)
        return nearest_rows(*args, **kwargs)

    monkeypatch.setattr("hiernorm.matching.nearest_rows", counted)
    for share, times in ((0.0, 0), (1e9, 1)):
        passes.clear()
        monkeypatch.setattr("hiernorm.nearest_rows.SURVIVOR_NS", share)
        monkeypatch.setattr("hiernorm.nearest_rows.SLOT_NS", 0.0)
        found = hiernorm.match_descriptors(a, b, mutual, ratio)
        assert len(passes) == times
        np.testing.assert_array_equal(found.pairs, expected.pairs)
        assert_same_bits(found.scores, expected.scores)
        assert_same_bits(found.ratios, expected.ratios)


def test_an_index_is_preferred_where_its_codes_rule_most_out():
    """Views of a falling spectrum against vectors without one; 8 of 128 dimensions are coded."""
    rng = np.random.default_rng(5)
    spectrum = np.where(np.arange(128) < 8, 1.0, 0.01)
    for scale, expected in ((spectrum, False), (np.ones(128), True)):
        rows = (rng.standard_normal((2000, 128)) * scale).astype(np.float32)
        index = DescriptorSet(rows, "l2").index
        queries = rows + np.float32(0.01) * rng.standard_normal(rows.shape, dtype=np.float32)
        assert prefers_pass(index, queries[:500], 2, directions=2) is expected


def test_a_flat_index_is_never_preferred_to_the_pass():
    index = hiernorm.Index(4, engine="flat")
    index.add(np.eye(4, dtype=np.float32))
    assert prefers_pass(index, np.eye(4, dtype=np.float32), 1, directions=1)

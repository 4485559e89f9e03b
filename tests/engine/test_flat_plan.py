"""Requests that an index with codes scans flat: which, with what counts, and who keeps the plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm import _core, fitting, reference
from hiernorm.reference import Float32Array
from support import METRICS, assert_same_hits, expected_hits, pickled, random_rows

PLAN = [0, 20, 9, 1]
"""Of about 1, 4, 16, 64 hits."""


def _wide(n: int = 3000, d: int = 192, seed: int = 0) -> Float32Array:
    """Vectors with a weak spectrum: codes pay for the nearest, and not for many hits."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, d + 1) ** -0.7
    centres = np.random.default_rng(99).standard_normal((60, d)) * spread
    noise = 0.5 * rng.standard_normal((n, d)) * spread
    return (centres[rng.integers(0, len(centres), n)] + noise).astype(np.float32)


def _planned(x: Float32Array, metric: str = "ip") -> hiernorm.Index:
    index = hiernorm.Index(x.shape[1], metric=metric)
    index.add(x)
    assert index.major is not None
    index._core.plan_flat(PLAN)
    return index


@pytest.mark.parametrize("metric", METRICS)
def test_the_plan_says_which_groups_are_scanned_flat(metric: str) -> None:
    x, queries = _wide(), _wide(45, seed=1)
    index = _planned(x, metric)
    core = index._core
    scores = [reference.canonical_scores(q, x, metric) for q in queries]
    before = hiernorm.isa()
    try:
        for isa in hiernorm.available_isas():
            _core.use_isa(isa)
            for k in (1, 3, 8, 40, 300):
                best = [reference.rank(s, np.arange(len(x)))[:k] for s in scores]
                flat = [reference.flat_work(s, k) for s in scores]
                for size in (1, 9, 45):
                    hits = index.search(queries, k, threads=1, batch_size=size)
                    assert_array_equal(hits.ids, best)
                    assert hits.certificate.exact.all()
                    is_flat = reference.scans_flat(PLAN, k, size)
                    work = hits.certificate.work
                    assert (work["sifted"] == flat).all() == is_flat
                    if size == 1 and not is_flat:
                        answer = reference.cascade_search(
                            queries[0], core.encoding().state(), core.tensors(), k
                        )
                        assert answer.work == {step: counts[0] for step, counts in work.items()}
    finally:
        _core.use_isa(before)


def test_threads_share_a_group_before_the_plan_is_read() -> None:
    x, queries = _wide(), _wide(30, seed=1)
    index = _planned(x)
    flat = [reference.flat_work(reference.canonical_scores(q, x), 4) for q in queries]
    one, two = (index.search(queries, 4, threads=threads) for threads in (1, 2))
    assert_same_hits(one, two)
    assert_array_equal(one.certificate.work["sifted"], flat)
    assert (two.certificate.work["sifted"] > flat).any()  # 15 queries each, 20 are needed


def test_a_search_among_few_entries_and_a_range_use_codes() -> None:
    x, queries = _wide(), _wide(30, seed=1)
    index = _planned(x)
    some = np.arange(0, len(x), 5)
    hits = index.search(queries, 64, where=some)
    ids, scores = expected_hits(queries, x[some], 64, "ip")
    assert_array_equal(hits.ids, some[ids])
    assert_array_equal(hits.scores, scores)
    assert (hits.certificate.work["tightened"] > hits.certificate.work["settled"]).any()
    limit = float(scores[0, 9])
    found = index.range(queries[:1], limit)[0][0]
    expected = np.flatnonzero(reference.canonical_scores(queries[0], x) >= limit)
    assert_array_equal(np.sort(found), expected)


def test_removed_entries_are_not_found_by_a_planned_scan() -> None:
    x, queries = _wide(), _wide(30, seed=1)
    index = _planned(x)
    index.delete(np.arange(0, len(x), 3))
    left = index.ids
    hits = index.search(queries, 64)
    ids, scores = expected_hits(queries, x[left], 64, "ip")
    assert_array_equal(hits.ids, left[ids])
    assert_array_equal(hits.scores, scores)
    assert_array_equal(hits.certificate.work["sifted"], hits.certificate.work["settled"])


def test_plain_vectors_that_many_entries_survive_get_a_plan() -> None:
    x = _wide(d=384) + np.float32(0.3)
    index = hiernorm.Index(x.shape[1], metric="l2")
    index.add(x)
    plan = index._core.flat_plan
    assert plan[-1] == 1 < plan[0]  # for many hits a query alone is scanned flat, for few not
    again = hiernorm.Index(x.shape[1], metric="l2")
    again.add(x)
    assert again._core.flat_plan == plan
    again.optimize()
    assert again._core.flat_plan == plan


def test_who_asks_for_codes_or_has_hn_vectors_gets_no_plan() -> None:
    x = _wide()
    for index in (
        hiernorm.Index(x.shape[1], major=31),
        hiernorm.Index(x.shape[1], cells=True),
        hiernorm.Index(x.shape[1], major=16, alpha=1 / 8),
    ):
        index.add(hiernorm.normalize(x, 16, 1 / 8))
        assert index._core.flat_plan == []


def test_a_plan_is_kept_by_files_and_copies(tmp_path: Path) -> None:
    x, queries = _wide(), _wide(30, seed=1)
    index = _planned(x, "l2")
    index.save(tmp_path / "index")
    loaded = hiernorm.Index.load(tmp_path / "index")
    hits = index.search(queries, 64)
    for copy in (pickled(index), loaded):
        assert copy._core.flat_plan == PLAN
        found = copy.search(queries, 64)
        assert_same_hits(found, hits)
        assert_array_equal(found.certificate.work["settled"], hits.certificate.work["settled"])
    loaded.add(x[:5] + 1)  # copies the file to memory
    assert loaded._core.flat_plan == PLAN


def test_a_lift_that_no_sampled_row_has_gets_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "SAMPLE_VALUES", 1 << 15)
    x = random_rows(5000, 48) * np.float32(0.8) ** np.arange(48, dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x *= np.random.default_rng(1).uniform(0.999, 1.001, (len(x), 1)).astype(np.float32)
    x[2041] *= np.float32(1.1)
    index = hiernorm.Index(48, metric="l2", major=15)
    index.add(x)
    assert index.search(x[:1], 3).certificate.work["sifted"][0] < 500
    residuals = index._core.tensors()["norms"][:, 1]
    assert residuals.max() < 1.5 * residuals.min()


@pytest.mark.parametrize(("entries", "grouped"), [(20_000, False), (1 << 15, True)])
def test_many_rotated_vectors_are_grouped_whatever_cones_leave(entries: int, grouped: bool) -> None:
    x = random_rows(entries, 32) * np.float32(0.9) ** np.arange(32, dtype=np.float32)
    index = hiernorm.Index(32, metric="l2")
    index.add(x)
    assert (index._core.ungrouped == 0) is grouped
    assert index.verify(x[:5], index.search(x[:5], k=3)).ok

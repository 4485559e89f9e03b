"""What an index says about itself: shares that are counted, words that follow from numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm.explanation import Explanation
from support import every_kind_and_metric, filled, hn_rows, random_rows

FALLING = np.float32(0.8) ** np.arange(32, dtype=np.float32)


@pytest.fixture(scope="module")
def index() -> hiernorm.Index:
    return filled("plain-cascade", random_rows(3000, 32) * FALLING, None, metric="l2")


@every_kind_and_metric
def test_every_index_explains_itself(kind: str, metric: str) -> None:
    index = filled(kind, hn_rows(400, 24, 8), 8, metric=metric)
    found = index.explain(k=3)
    assert found.engine == index.engine
    assert found.entries == 400
    assert found.energy.shape == (24,)
    assert found.energy[-1] == 1
    assert (np.diff(found.energy) >= 0).all()
    assert 0 <= found.share_settled <= found.share_refined <= found.share_scanned <= 1
    assert min(found.single_us, found.batch_us, found.flat_single_us, found.flat_batch_us) > 0


def test_shares_are_those_of_certificates(index: hiernorm.Index) -> None:
    queries = random_rows(50, 32, seed=1) * FALLING
    found = index.explain(queries, k=7)
    work = index.search(queries, 7, threads=1).certificate.work
    assert found.queries == 50
    assert found.share_scanned == work["scanned"].mean() / 3000
    assert found.share_refined == work["sifted"].mean() / 3000
    assert found.share_settled == work["settled"].mean() / 3000


def test_entries_that_serve_as_queries_find_one_hit_more(index: hiernorm.Index) -> None:
    queries = index.reconstruct(np.linspace(0, 2999, 128).astype(np.int64))
    assert index.explain(k=4).share_refined == index.explain(queries, k=5).share_refined


def test_the_energy_is_that_of_the_rotated_vectors(index: hiernorm.Index) -> None:
    found = index.explain()
    x = index.reconstruct(index.ids).astype(np.float64)
    spectrum = np.linalg.eigvalsh(x.T @ x)[::-1]
    expected = np.cumsum(spectrum) / spectrum.sum()
    assert np.abs(found.energy - expected).max() < 1e-4  # the rotation is stored in float32
    assert found.dims_for(0.9) == np.searchsorted(expected, 0.9) + 1
    assert found.dims_for(1.0) <= 32


def _with_times(found: Explanation, single: float, batch: float) -> Explanation:
    return replace(found, single_us=10, batch_us=10, flat_single_us=single, flat_batch_us=batch)


def test_words_follow_from_numbers(index: hiernorm.Index) -> None:
    found = index.explain()
    assert _with_times(found, 95, 42).verdict == (
        "The index is 9.5 times as fast as brute force for single queries, 4.2 times for batches."
    )
    assert _with_times(found, 95, 4).verdict == (
        "The index is 9.5 times as fast as brute force for single queries. "
        "Brute force wins for batches: use engine='flat' if that is what you have."
    )
    assert "Brute force wins for single queries" in _with_times(found, 4, 95).verdict
    assert _with_times(found, 10, 4).verdict.startswith("Brute force is as fast, or faster")
    assert "Codes do not pay" in replace(found, engine="flat").verdict


def test_the_summary_names_what_was_measured(index: hiernorm.Index) -> None:
    found = index.explain()
    text = str(found)
    for part in ("3,000 of 32 dimensions, metric l2", f"first {found.major} dimensions", "90% in"):
        assert part in text
    assert text.endswith(found.verdict)
    facts = found.facts()
    assert facts["verdict"] == found.verdict
    assert_array_equal(facts["energy"], found.energy.round(6))


def test_an_empty_index_has_nothing_to_explain() -> None:
    with pytest.raises(ValueError, match="the index is empty: add vectors"):
        hiernorm.Index(3).explain()

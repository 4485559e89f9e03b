"""Filters and soft mode: exact among the entries that are allowed, or a gap that is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hiernorm
import hiernorm.storage
from database_support import (
    ALPHA,
    QUERIES,
    create,
    right_hits,
    small_segments,
    vectors,
)
from hiernorm.storage.tensors import TensorFile
from support import assert_same_hits, expected_hits, hn_rows, raises_text


@pytest.mark.parametrize("kind", ["hn", "plain"])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.001])
def test_filters_with_cells_keep_the_answer_exact(path: Path, kind: str, share: float) -> None:
    """Clusters, so that cells pay and are used; filters from half of the entries to a few."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, 24))
    features = centres[rng.integers(0, 200, 20_000)] + 0.2 * rng.standard_normal((20_000, 24))
    x = hiernorm.normalize(features, 6, ALPHA)
    split = {"major": 6, "alpha": ALPHA} if kind == "hn" else {}
    db = hiernorm.Database.create(path, 24, **split)
    db.add(x)
    db.delete(range(100))
    assert "cones_16" in TensorFile(next(path.glob("segment-*"))).header.tensors
    allowed = np.flatnonzero(rng.random(20_000) < share)
    alive = allowed[allowed >= 100]
    queries = x[rng.integers(0, 20_000, 8)]
    for k in (1, 10):
        hits = db.search(queries, k, where=allowed)
        assert_same_hits(hits, expected_hits(queries, x[alive], k, ids=alive))
        assert hits.certificate.exact.all()
    if share == 0.5:
        assert hits.certificate.work["scanned"].mean() < len(x) / 2


def test_a_selection_serves_many_searches_of_its_generation(path: Path) -> None:
    db = create(path)
    rows = vectors(1, 50)
    db.add(rows)
    selection = db.select(lambda ids: ids % 2 == 0)
    assert len(selection) == 25
    right = right_hits({i: rows[i] for i in range(0, 50, 2)}, 3)
    assert_same_hits(db.search(QUERIES, 3, where=selection), right)
    db.delete([0])
    with raises_text(
        ValueError, "the selection is of generation 1, the database is at 2: select again"
    ):
        db.search(QUERIES, 3, where=selection)


def test_filters_that_make_no_sense_are_refused(path: Path) -> None:
    db = create(path)
    db.add(vectors(1, 10))
    with raises_text(
        ValueError, "where has shape (9,), a mask over the ids of this database has (10,)"
    ):
        db.search(QUERIES, where=np.ones(9, bool))
    with raises_text(
        TypeError,
        "where must return booleans of shape (10,) for that many ids, got int64 of shape (10,)",
    ):
        db.search(QUERIES, where=lambda ids: ids)
    with raises_text(TypeError, "ids must be integers (int64 is used), got dtype float64"):
        db.search(QUERIES, where=[0.5])
    assert (db.search(QUERIES, where=[]).ids == -1).all()


def test_soft_mode_says_how_far_off_it_can_be(path: Path) -> None:
    x, queries = hn_rows(3000, 40, 8, ALPHA), hn_rows(20, 40, 8, ALPHA, seed=1)
    db = hiernorm.Database.create(path, 40, major=8, alpha=ALPHA)
    with small_segments(entries=4000):
        for first in range(0, 3000, 1000):
            db.add(x[first : first + 1000])
    assert db.info()["segments"] > 1
    hits = db.search(queries, 3, beta=0.01, where=lambda ids: ids % 3 != 0)
    allowed = np.flatnonzero(np.arange(3000) % 3)
    true_ids, true_scores = expected_hits(queries, x[allowed], 3, ids=allowed)
    certificate = hits.certificate
    assert not certificate.exact.all()
    np.testing.assert_array_equal(hits.ids[certificate.exact], true_ids[certificate.exact])
    assert (true_scores[:, -1] <= certificate.kth_score + certificate.gap).all()

"""Hits known from elsewhere: the k best of both, on every instruction set, ties by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hiernorm
from database_support import ALPHA, MAJOR, D, small_segments, vectors
from support import assert_same_hits, expected_hits, raises_text

QUERIES = vectors(7, 20)


def _database(path: Path, kind: str, metric: str, ids: np.ndarray, rows: np.ndarray):
    split = {"major": MAJOR, "alpha": ALPHA} if kind == "hn" else {}
    db = hiernorm.Database.create(path, D, metric=metric, **split)
    if len(ids):
        db.add(rows, ids)
    return db


@pytest.mark.parametrize("cells", [None, True])
@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
@pytest.mark.parametrize("kind", ["hn", "plain"])
def test_known_hits_and_those_of_the_database_are_ranked_as_one(kind, metric, cells, isa, tmp_path):
    rows = vectors(1, 300)  # a fifth of them equal: ties on both sides
    ids = np.random.default_rng(2).permutation(300)
    here = np.random.default_rng(3).random(300) < 0.5
    with small_segments(cells=cells):
        first = _database(tmp_path / "a", kind, metric, ids[here], rows[here])
        second = _database(tmp_path / "b", kind, metric, ids[~here], rows[~here])
        empty = _database(tmp_path / "c", kind, metric, ids[:0], rows[:0])
        for k in (1, 5, 80, 400):
            right = expected_hits(QUERIES, rows, k, metric, ids)
            for a, b in ((first, second), (second, first)):
                found = b.search(QUERIES, k, _known=a.search(QUERIES, k))
                assert_same_hits(found, right)
                assert found.certificate.exact.all()
                assert found.certificate.entries == len(b)
            assert_same_hits(empty.search(QUERIES, k, _known=found), right)


def test_known_hits_leave_less_to_read(tmp_path):
    rows = vectors(1, 4000)
    db = _database(tmp_path / "a", "hn", "ip", np.arange(4000), rows)
    best = _database(tmp_path / "b", "hn", "ip", np.arange(4000, 4020), QUERIES)
    alone = db.search(QUERIES, 1).certificate.work["settled"].sum()
    known = best.search(QUERIES, 1)
    assert db.search(QUERIES, 1, _known=known).certificate.work["settled"].sum() < alone


def test_known_hits_of_another_shape_are_refused(tmp_path):
    db = _database(tmp_path / "a", "hn", "ip", np.arange(9), vectors(1, 9))
    hits = db.search(QUERIES, 3)
    with raises_text(ValueError, "known hits have shape (20, 3), expected (20, 4)"):
        db.search(QUERIES, 4, _known=hits)
    with raises_text(ValueError, "known hits have shape (20, 3), expected (1, 3)"):
        db.search(QUERIES[0], 3, _known=hits)
    hits.scores[0, 0] = np.nan
    with raises_text(ValueError, "known hits have scores that are NaN"):
        db.search(QUERIES, 3, _known=hits)

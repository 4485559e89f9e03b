"""Mistakes raise what FAISS raises; settings and helpers have the values of FAISS."""

from __future__ import annotations

import numpy as np
import pytest

import hiernorm.adapters.faiss_shaped as ours
from faiss_pairs import IDS, D, Q, X, assert_same, flat, full, mapped

theirs = pytest.importorskip("faiss", reason="needs hiernorm[bench]")

WRONG = {
    "dimensions of an addition": lambda f: full(f, "l2").add(X[:, :7]),
    "dimensions of a query": lambda f: full(f, "l2").search(X[:, :7], 1),
    "dimensions of a range": lambda f: full(f, "l2").range_search(X[:, :7], 1),
    "k of 0": lambda f: full(f, "l2").search(X, 0),
    "k below 0": lambda f: full(f, "l2").search(X, -5),
    "shape of D": lambda f: full(f, "l2").search(X, 2, D=np.empty((3, 3), np.float32)),
    "position behind the last": lambda f: full(f, "l2").reconstruct(300),
    "positions behind the last": lambda f: full(f, "l2").reconstruct_n(299, 5),
    "position below 0": lambda f: full(f, "l2").reconstruct_n(-1, 1),
    "ids of a flat index": lambda f: flat(f, "l2").add_with_ids(X, IDS),
    "no ids": lambda f: mapped(f, "l2").add(X),
    "too few ids": lambda f: mapped(f, "l2").add_with_ids(X, IDS[1:]),
    "vectors of an IndexIDMap": lambda f: mapped(f, "l2").reconstruct(int(IDS[0])),
    "an unknown id": lambda f: mapped(f, "l2", "IndexIDMap2").reconstruct(5000),
    "ids that are not unique": lambda f: mapped(
        f, "l2", "IndexIDMap2", IDS // 2
    ).check_consistency(),
    "an index that is not empty": lambda f: f.IndexIDMap(full(f, "l2")),
    "merging other metrics": lambda f: f.IndexFlatL2(D).merge_from(f.IndexFlatIP(D)),
    "merging other dimensions": lambda f: f.IndexFlatL2(D).merge_from(f.IndexFlatL2(D + 1)),
    "merging with other ids": lambda f: full(f, "l2").merge_from(full(f, "l2"), 5),
    "an unknown description": lambda f: f.index_factory(D, "Blah"),
    "spaces in a description": lambda f: f.index_factory(D, "IDMap, Flat"),
    "a file that is not there": lambda f: f.read_index("there is no such file"),
    "bytes of something else": lambda f: f.deserialize_index(np.zeros(100, np.uint8)),
    "half of the bytes": lambda f: f.deserialize_index(f.serialize_index(full(f, "l2"))[:5000]),
    "normalisation of float64": lambda f: f.normalize_L2(X.astype(np.float64)),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_raises_what_faiss_raises(case):
    with pytest.raises(Exception) as theirs_raised:  # noqa: PT011
        WRONG[case](theirs)
    with pytest.raises(theirs_raised.type) as ours_raised:
        WRONG[case](ours)
    assert len(str(ours_raised.value)) > 20


def test_normalised_rows_have_the_direction_and_norm_of_those_of_faiss():
    rows = np.random.default_rng(0).standard_normal((9000, 24)).astype(np.float32)
    rows[5] = 0
    mine, other = rows.copy(), rows.copy()
    ours.normalize_L2(mine)
    theirs.normalize_L2(other)
    np.testing.assert_array_max_ulp(mine, other, maxulp=4)
    assert (mine[5] == 0).all()


def test_the_threads_that_are_set_do_not_change_an_answer():
    index = full(ours, "ip")
    before = ours.omp_get_max_threads()
    try:
        answers = []
        for threads in (1, 3):
            ours.omp_set_num_threads(threads)
            assert ours.omp_get_max_threads() == threads
            answers.append(index.search(Q["ip"], 20))
    finally:
        ours.omp_set_num_threads(before)
    assert_same(*answers)


def test_settings_of_kernels_have_the_values_of_faiss_and_may_be_set(monkeypatch):
    for name, value in vars(ours.cvar).items():
        assert getattr(theirs.cvar, name) == value
        monkeypatch.setattr(ours.cvar, name, value + 1)

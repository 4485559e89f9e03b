"""The FAISS-shaped index: one line replaces FAISS, files come back, errors are clear."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hiernorm.adapters import IndexHN, read_index, write_index
from support import hn_rows, raises_text, random_rows


def faiss_script(index, x, q, threshold=40):
    """What a user of FAISS does; exact in float32, so that both give the same bits."""
    index.add(x[:300])
    index.add(x[300:])
    scores, ids = index.search(q, 7)
    lims, range_scores, range_ids = index.range_search(q, threshold)
    ranges = [
        sorted(zip(range_ids[a:b].tolist(), range_scores[a:b].tolist(), strict=True))
        for a, b in pairwise(lims)
    ]
    return index.ntotal, scores.tolist(), ids.tolist(), ranges, index.reconstruct(17).tolist()


def whole_rows(n, d, seed=0):
    """Rows of small whole numbers, whose products every library sums without rounding."""
    return np.random.default_rng(seed).integers(-9, 10, (n, d)).astype(np.float32)


def test_one_line_replaces_faiss():
    faiss = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    # Distinct scores: FAISS promises no order among equal ones.
    x, q = whole_rows(500, 16), whole_rows(20, 16, seed=1) + random_rows(20, 16) / 8
    x, q = x.round(), (q * 1024).round() / 1024
    theirs = faiss_script(faiss.IndexFlatIP(16), x, q)
    ours = faiss_script(IndexHN(16), x, q)
    assert ours == theirs
    assert any(ours[3])


@pytest.mark.parametrize("kind", ["IndexFlatL2", "IndexFlat"])
def test_one_line_replaces_faiss_by_distance(kind):
    faiss = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    x, q = whole_rows(500, 16), whole_rows(20, 16, seed=1) + random_rows(20, 16) / 8
    q = (q * 16).round() / 16
    q[3] = x[3]
    nearest = np.sort(((q[:, None] - x) ** 2).sum(axis=2), axis=1)[:, :8]
    assert (np.diff(nearest) > 0).all(), "FAISS promises no order among equal distances"
    flat = faiss.IndexFlatL2(16) if kind == "IndexFlatL2" else faiss.IndexFlat(16, faiss.METRIC_L2)
    theirs = faiss_script(flat, x, q, threshold=400)
    ours = faiss_script(IndexHN(16, faiss.METRIC_L2), x, q, threshold=400)
    assert ours == theirs
    assert ours[1][3][0] == 0
    assert not np.signbit(ours[1][3][0])
    assert any(ours[3])
    assert IndexHN(16, metric=faiss.METRIC_L2).metric_type == flat.metric_type
    assert IndexHN(16).metric_type == faiss.METRIC_INNER_PRODUCT


def test_an_entry_at_the_radius_is_outside_as_in_faiss():
    faiss = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    x = np.float32([[0, 0], [3, 4], [1, 0]])
    for radius in (25, 25.5):
        found = []
        for index in (IndexHN(2, faiss.METRIC_L2), faiss.IndexFlatL2(2)):
            index.add(x)
            lims, distances, ids = index.range_search(x[:1], radius)
            found.append((lims.tolist(), sorted(zip(ids.tolist(), distances, strict=True))))
        assert found[0] == found[1]
    assert found[0][0] == [0, 3]


def test_ids_filters_and_removal_are_those_of_faiss():
    faiss = pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    x = hn_rows(400, 32, 8)
    ids = np.random.default_rng(3).permutation(10_000)[:400]
    ours, theirs = IndexHN(32, major=8, alpha=1 / 8), faiss.IndexIDMap(faiss.IndexFlatIP(32))
    for index in (ours, theirs):
        index.add_with_ids(x, ids)
    chosen = faiss.IDSelectorRange(2_000, 6_000)
    params = faiss.SearchParameters(sel=chosen)
    found = ours.search(x[:30], 5, params=params)
    np.testing.assert_array_equal(found[1], theirs.search(x[:30], 5, params=params)[1])
    assert (found[1] >= 2_000).all()
    np.testing.assert_array_equal(
        ours.search(x[:30], 5, params=lambda i: (i >= 2_000) & (i < 6_000))[1], found[1]
    )
    assert ours.remove_ids(chosen) == theirs.remove_ids(chosen) > 0
    assert ours.ntotal == theirs.ntotal
    np.testing.assert_array_equal(ours.search(x[:30], 5)[1], theirs.search(x[:30], 5)[1])


def test_missing_hits_and_new_ids_are_those_of_faiss():
    index = IndexHN(4)
    index.add(np.eye(4))
    scores, ids = index.search(np.eye(4)[:1], 6)
    assert ids[0, 4:].tolist() == [-1, -1]
    assert (scores[0, 4:] == -np.finfo(np.float32).max).all()
    assert index.remove_ids([3, 77]) == 1
    index.add(np.eye(4)[:1])
    assert sorted(index.search(np.eye(4)[:1], 4)[1][0].tolist()) == [0, 1, 2, 4]
    nearest = IndexHN(4, metric=1)
    nearest.add(np.eye(4))
    distances, ids = nearest.search(np.eye(4)[:1], 6)
    assert distances[0, :4].tolist() == [0, 2, 2, 2]
    assert (distances[0, 4:] == np.finfo(np.float32).max).all()
    assert ids[0, 4:].tolist() == [-1, -1]
    index.reset()
    assert index.ntotal == len(index) == 0


@pytest.mark.parametrize("metric", [0, 1])
def test_a_written_index_comes_back_and_a_damaged_one_has_its_error(metric, tmp_path):
    x = hn_rows(200, 16, 4)
    index = IndexHN(16, metric, major=4, alpha=1 / 8)
    index.add_with_ids(x, np.arange(200) * 3)
    file = tmp_path / "index.hn.npz"
    write_index(index, file)
    twin = read_index(file)
    for mine, other in zip(index.search(x, 3), twin.search(x, 3), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert twin.metric_type == metric
    twin.add(x[:1])
    assert 598 in twin.search(x[:1], 2)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["index.hn.npz"]
    content = file.read_bytes()
    for bad in (b"", content[:100], content[: len(content) // 2], b"x" * 500):
        file.write_bytes(bad)
        with pytest.raises(
            ValueError, match="is no flat index of FAISS or of write_index, or it is damaged"
        ):
            read_index(file)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_index(tmp_path / "none")


def test_bad_selectors_have_their_errors():
    index = IndexHN(4)
    index.add(np.eye(4))
    with raises_text(
        ValueError, "a selecting function must return 4 booleans, got shape (4,), dtype int64"
    ):
        index.remove_ids(lambda ids: ids)
    with pytest.raises(TypeError, match="ids must be integers"):
        index.remove_ids(["a"])
    with pytest.raises(KeyError, match="9"):
        index.reconstruct(9)
    with raises_text(
        ValueError,
        "metric must be 0 (faiss.METRIC_INNER_PRODUCT) or 1 (faiss.METRIC_L2), got 'l2'",
    ):
        IndexHN(4, metric="l2")

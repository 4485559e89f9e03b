"""An index, a database and a sharded database are searched, asked and changed the same way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hiernorm
from containers import CONTAINERS, empty, holding
from hiernorm.reference import Float32Array
from support import METRICS, assert_same_bits, assert_same_hits, expected_hits, hn_rows, raises_text

D, MAJOR, N = 20, 5, 700
X, QUERIES = hn_rows(N, D, MAJOR), hn_rows(6, D, MAJOR, seed=1)
IDS = np.random.default_rng(2).permutation(3 * N)[:N]

each = pytest.mark.parametrize("container", CONTAINERS)
everywhere = pytest.mark.parametrize(
    ("container", "vectors"), [(c, v) for c in CONTAINERS for v in ("hn", "plain")]
)

CHOSEN = np.sort(IDS)[::3]
FILTERS: dict[str, Any] = {
    "ids": CHOSEN[::-1],
    "ids with unknown ones": [*CHOSEN.tolist(), 3 * N + 5, *CHOSEN[:4].tolist()],
    "mask": np.isin(np.sort(IDS), CHOSEN),
    "function": lambda ids: np.isin(ids, CHOSEN),
}


@everywhere
def test_all_are_searchable(container: str, vectors: str) -> None:
    with holding(X, container, vectors, MAJOR, ids=IDS, metric="l2") as found:
        assert isinstance(found, hiernorm.Searchable)
        assert (found.dim, found.metric, len(found)) == (D, "l2", N)
        assert found.alpha == (0.125 if vectors == "hn" else None)
        if vectors == "hn":
            assert found.major == MAJOR
        np.testing.assert_array_equal(found.ids, np.sort(IDS))
        assert_same_bits(found.reconstruct(IDS[:9]), X[:9])


@pytest.mark.parametrize("vectors", ["hn", "plain"])
def test_all_have_the_same_digest(vectors: str) -> None:
    digests = set()
    for container in CONTAINERS:
        with holding(X, container, vectors, MAJOR, ids=IDS) as found:
            digests |= {found.digest, found.search(QUERIES, 2).certificate.digest}
    assert len(digests) == 1


@each
def test_an_id_is_in_it_or_not(container: str) -> None:
    with holding(X, container, "plain", MAJOR, ids=IDS) as found:
        assert IDS[3] in found
        assert int(IDS[3]) in found
        absent = [3 * N + 1, -1, 2**70, "a", None, 1.5]
        assert [value in found for value in absent] == [False] * len(absent)


@everywhere
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", FILTERS)
def test_a_filtered_search_is_that_of_the_chosen_entries_alone(
    kind: str, metric: str, container: str, vectors: str
) -> None:
    where, at = FILTERS[kind], np.isin(IDS, CHOSEN)
    right = expected_hits(QUERIES, X[at], 7, metric, IDS[at])
    with holding(X, container, vectors, MAJOR, ids=IDS, metric=metric) as found:
        hits = found.search(QUERIES, 7, where=where)
        assert_same_hits(hits, right)
        assert hits.certificate.exact.all()
        assert hits.certificate.entries == len(CHOSEN)
        assert found.verify(QUERIES, hits, where=where).ok
        assert not found.verify(QUERIES, hits).ok
        threshold = float(right[1][0, 3])
        ids, scores = found.range(QUERIES, threshold, where=where)[0]
        np.testing.assert_array_equal(ids, right[0][0][: len(ids)])
        assert_same_bits(scores, right[1][0][: len(ids)])
        assert len(ids) >= 4


@each
def test_few_none_and_wrong_filters(container: str) -> None:
    with holding(X, container, "plain", MAJOR, ids=IDS) as found:
        assert found.search(QUERIES, 2, where=IDS[:1]).ids.tolist() == [[IDS[0], -1]] * 6
        assert (found.search(QUERIES, 2, where=[]).ids == -1).all()
        with pytest.raises(
            ValueError, match=r"where has shape \(3,\), a mask over the ids of this"
        ):
            found.search(QUERIES, 2, where=[True, False, True])
        with pytest.raises(TypeError, match="where must return booleans of shape"):
            found.search(QUERIES, 2, where=lambda ids: ids)


@everywhere
def test_what_is_deleted_or_replaced_is_gone(container: str, vectors: str) -> None:
    with holding(X, container, vectors, MAJOR, ids=IDS) as found:
        found.delete(IDS[:300])
        found.upsert(X[:50], IDS[280:330])
        rows, ids = np.concatenate([X[:50], X[330:]]), IDS[280:]
        np.testing.assert_array_equal(found.ids, np.sort(ids))
        assert len(found) == len(ids)
        hits = found.search(QUERIES, 9)
        assert_same_hits(hits, expected_hits(QUERIES, rows, 9, ids=ids))
        assert found.verify(QUERIES, hits).ok
        assert_same_bits(found.reconstruct(ids), rows)
        gone = int(IDS[0])
        with pytest.raises(KeyError, match=f"id {gone} is not in the"):
            found.delete([ids[0], gone])
        found.delete([gone], ignore_missing=True)
        assert len(found) == len(ids)


@each
def test_ids_that_come_without_follow_the_largest_ever_used(container: str) -> None:
    with empty(container, "plain", D, MAJOR) as found:
        found.add(X[:2])
        found.add(X[2:3], ids=[7])
        found.add(X[3:5])
        found.delete([9])
        found.add(X[5:6])
        assert found.ids.tolist() == [0, 1, 7, 8, 10]


@each
def test_additions_say_how_many(container: str) -> None:
    with empty(container, "plain", D, MAJOR) as found:
        assert found.add(X[:3], ids=[4, 5, 6]) == 3
        assert found.upsert(X[:2], ids=[6, 7]) == 2
        assert found.add(X[0]) == 1
        assert found.add(X[:0]) == 0
        assert found.ids.tolist() == [4, 5, 6, 7, 8]


@each
def test_files_that_are_there_or_not_are_checked(container: str) -> None:
    with holding(X, container, "plain", MAJOR) as found:
        assert found.check().ok


@each
def test_a_pickled_container_has_the_same_entries(container: str) -> None:
    with holding(X, container, "plain", MAJOR, ids=IDS, metric="l2") as found:
        twin = pickle.loads(pickle.dumps(found))
        assert twin.digest == found.digest
        assert_same_hits(twin.search(QUERIES, 3), found.search(QUERIES, 3))


@each
def test_negative_ids_are_refused(container: str) -> None:
    with holding(X, container, "plain", MAJOR) as found:
        for change in (found.add, found.upsert):
            text = "ids must be at least 0, got -1: -1 means that there is no hit"
            with raises_text(ValueError, text):
                change(X[:2], ids=[5000, -1])
        assert len(found) == N


@each
def test_an_answer_is_two_arrays_and_one_pair_per_query(container: str) -> None:
    with holding(X, container, "plain", MAJOR, ids=IDS) as found:
        hits = found.search(QUERIES, 4)
    ids, scores = hits
    assert ids is hits.ids
    assert scores is hits.scores
    assert len(hits) == len(list(hits.queries())) == len(QUERIES)
    for i, (one_ids, one_scores) in enumerate(hits.queries()):
        assert_same_bits(one_ids, ids[i])
        assert_same_bits(one_scores, hits[i][1])
    with pytest.raises(IndexError):
        hits[len(QUERIES)]


def _euclidean(q: Float32Array, x: Float32Array) -> Any:
    return np.linalg.norm(q.astype(float) - x, axis=1)


def _cosine(q: Float32Array, x: Float32Array) -> Any:
    x = x.astype(float)
    return 1 - x @ q / np.linalg.norm(x, axis=1) / np.linalg.norm(q.astype(float))


@each
@pytest.mark.parametrize(("metric", "distance"), [("l2", _euclidean), ("cosine", _cosine)])
def test_distances_are_those_of_the_metric(
    container: str, metric: str, distance: Callable[..., Any]
) -> None:
    with holding(X, container, "plain", MAJOR, metric=metric) as found:
        hits = found.search(QUERIES, N + 1)
        ranges = found.range(QUERIES, float(hits.scores[0, 5]))
    for q, ids, distances in zip(QUERIES, hits.ids, hits.distances, strict=True):
        np.testing.assert_allclose(distances[:-1], distance(q, X[ids[:-1]]), atol=1e-7)
        assert distances[-1] == np.inf
    assert_same_bits(ranges.distances[:6], hits.distances[0, :6])


@each
def test_inner_products_have_no_distances(container: str) -> None:
    with holding(X, container, "plain", MAJOR) as found:
        hits = found.search(QUERIES, 2)
    with pytest.raises(AttributeError, match="metric 'ip' has scores, and no distances"):
        _ = hits.distances


@each
def test_a_pickled_answer_leaves_the_entries_behind(container: str) -> None:
    with holding(X, container, "plain", MAJOR) as found:
        hits, other = found.search(QUERIES, 3), found.range(QUERIES, 0.5)
        expected = hits.certificate.digest
        packed = pickle.dumps((hits, other))
        assert len(packed) < X.nbytes / 4
        copy, ranges = pickle.loads(packed)
        assert_same_hits(copy, hits)
        assert copy.certificate.digest == expected
        assert ranges.certificate.digest == ""
        assert found.verify(QUERIES, copy).ok
        assert_same_bits(ranges.ids, other.ids)


@each
def test_verify_finds_what_was_tampered_with(container: str) -> None:
    with holding(X, container, "plain", MAJOR, ids=IDS) as found:
        hits = found.search(QUERIES, 3)
        assert found.verify(QUERIES, hits).ok
        hits.scores[2, 1] = np.nextafter(hits.scores[2, 1], -9)
        (difference,) = found.verify(QUERIES, hits).differences
        assert difference.startswith("query 2, rank 1: score")
        with raises_text(ValueError, "2 queries, but hits of 6"):
            found.verify(QUERIES[:2], hits)


@pytest.mark.parametrize("container", CONTAINERS[1:])
def test_the_former_name_of_check_warns(container: str) -> None:
    text = r"verify\(\) without an answer is now called"
    with (
        holding(X, container, "plain", MAJOR) as found,
        pytest.warns(DeprecationWarning, match=text),
    ):
        assert found.verify().ok

"""The same operations give the same results in FAISS and here: values, shapes and types."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import hiernorm.adapters.faiss_shaped as ours
from faiss_pairs import IDS, METRICS, THRESHOLDS, D, Q, X, assert_same, flat, full, kept, mapped

theirs = pytest.importorskip("faiss", reason="needs hiernorm[bench]")


def search_flat(faiss, metric):
    index = full(faiss, metric)
    index.train(X)
    return kept(index), index.search(Q[metric], 7), index.assign(Q[metric], 3)


def search_by_the_named_classes(faiss, metric):
    index = {"ip": faiss.IndexFlatIP, "l2": faiss.IndexFlatL2}[metric](D)
    index.add(X)
    return kept(index), index.search(Q[metric][:1], 5), isinstance(index, faiss.IndexFlat)


def search_more_than_there_is(faiss, metric):
    index = flat(faiss, metric)
    index.add(X[:3])
    return index.search(Q[metric], 5), index.search_and_reconstruct(Q[metric], 5)


def search_an_empty_index(faiss, metric):
    index = flat(faiss, metric)
    return index.search(Q[metric], 2), index.range_search(Q[metric], 1e9), index.reconstruct_n()


def search_an_empty_batch(faiss, metric):
    index = full(faiss, metric)
    return index.search(Q[metric][:0], 2), index.range_search(Q[metric][:0], 1e9)[0]


def search_into_given_arrays(faiss, metric):
    index, m = full(faiss, metric), len(Q[metric])
    distances, ids = np.empty((m, 4), np.float32), np.empty((m, 4), np.int64)
    found = index.search(Q[metric], 4, D=distances, I=ids)
    labels = np.empty((m, 2), np.int64)
    assert found[0] is distances
    assert index.assign(Q[metric], 2, labels) is labels
    return distances, ids, labels, found


def search_and_reconstruct(faiss, metric):
    return full(faiss, metric).search_and_reconstruct(Q[metric], 3)


def search_ranges(faiss, metric):
    index = full(faiss, metric)
    found = index.range_search(Q[metric], THRESHOLDS[metric])
    assert 0 < len(found[2]) < 300 * 25
    everything = np.inf if metric == "l2" else -np.inf
    return found, index.range_search(Q[metric][:2], everything)


def find_vectors_by_position(faiss, metric):
    index = full(faiss, metric)
    given = np.empty(D, np.float32)
    return (
        index.reconstruct(17),
        index.reconstruct(17, given),
        index.reconstruct_batch(np.array([5, 299, 5])),
        index.reconstruct_n(),
        index.reconstruct_n(290),
        index.reconstruct_n(3, 4),
        index.reconstruct_n(300, 0),
        faiss.rev_swig_ptr(index.get_xb(), 300 * D).copy(),  # FAISS gives a view of its memory
        faiss.vector_to_array(index.codes),
        (index.code_size, index.sa_code_size()),
    )


def remove_moves_positions_up(faiss, metric):
    index = full(faiss, metric)
    counts = (
        index.remove_ids(np.array([3, 4, 299, 1000, 3])),
        index.remove_ids(faiss.IDSelectorRange(10, 60)),
    )
    first = index.search(Q[metric], 5), index.range_search(Q[metric], THRESHOLDS[metric])
    index.add(X[:9] * 2)
    params = faiss.SearchParameters(sel=faiss.IDSelectorRange(200, 300))
    return (
        counts,
        index.ntotal,
        first,
        index.search(Q[metric], 5),
        index.search(Q[metric], 5, params=params),
        index.reconstruct_n(),
        index.reconstruct(240),
    )


def remove_everything_and_begin_again(faiss, metric):
    index = full(faiss, metric)
    assert index.remove_ids(faiss.IDSelectorAll()) == 300
    index.add(X[5:8])
    removed = index.search(Q[metric], 3)
    index.reset()
    empty = index.ntotal
    index.add(X[50:90])
    return removed, empty, index.search(Q[metric], 3)


def merge_flat(faiss, metric):
    index, other = full(faiss, metric), flat(faiss, metric)
    other.add(X[:50] * 3)
    index.merge_from(other)
    return index.ntotal, other.ntotal, index.search(Q[metric] * 2, 5)


def permute_and_clone(faiss, metric):
    index = full(faiss, metric)
    twin = faiss.clone_index(index)
    index.permute_entries(np.random.default_rng(0).permutation(300))
    return index.search(Q[metric], 5), twin.search(Q[metric], 5)


def filter_by_every_selector(faiss, metric):
    some = np.array([3, 299, 50, 51, 1000, 50])
    bits = np.packbits(np.arange(200) % 3 == 0, bitorder="little")
    low, even = faiss.IDSelectorRange(0, 150), faiss.IDSelectorBatch(np.arange(0, 300, 2))
    selectors = [
        faiss.IDSelectorAll(),
        low,
        even,
        faiss.IDSelectorRange(100, 260, True),
        faiss.IDSelectorArray(some),
        faiss.IDSelectorBatch(some),
        faiss.IDSelectorBitmap(bits),
        faiss.IDSelectorNot(even),
        faiss.IDSelectorAnd(low, even),
        faiss.IDSelectorOr(low, even),
        faiss.IDSelectorXOr(low, faiss.IDSelectorNot(even)),
        faiss.IDSelectorBatch(np.array([5000])),
    ]
    results = []
    for index, labels in ((full(faiss, metric), range(300)), (mapped(faiss, metric), IDS.tolist())):
        for sel in selectors:
            params = faiss.SearchParameters(sel=sel)
            members = [bool(sel.is_member(label)) for label in (*labels, -1, 10**12)]
            found = index.search(Q[metric], 5, params=params)
            within = index.range_search(Q[metric], THRESHOLDS[metric], params=params)
            results.append((members, found, within))
    return results


def map_ids(faiss, metric):
    ids = IDS.copy()
    ids[20:25] = ids[200]  # an id may be given twice
    index = mapped(faiss, metric, ids=ids)
    first = index.search(Q[metric], 6), index.range_search(Q[metric], THRESHOLDS[metric])
    removed = index.remove_ids(np.array([ids[200], ids[7], 5000]))
    return (
        kept(index),
        first,
        removed,
        index.ntotal,
        index.index.ntotal,
        faiss.vector_to_array(index.id_map),
        index.search(Q[metric], 6),
    )


def map_ids_and_find_by_id(faiss, metric):
    ids = IDS + 200  # FAISS reconstructs no hit with a negative id
    index = mapped(faiss, metric, "IndexIDMap2", ids)
    index.check_consistency()
    found = index.reconstruct(int(ids[250])), index.reconstruct_batch(ids[40:50])
    index.remove_ids(ids[100:200])
    return (
        found,
        index.reconstruct(int(ids[250])),
        index.reconstruct_n(int(ids[250]), 1),
        index.search_and_reconstruct(Q[metric][:3], 2),
        faiss.vector_to_array(index.id_map),
    )


def merge_maps(faiss, metric):
    index, other = mapped(faiss, metric), mapped(faiss, metric, ids=IDS + 5)
    other.remove_ids(IDS[10:] + 5)
    index.merge_from(other, 10_000)
    return index.ntotal, other.ntotal, faiss.vector_to_array(index.id_map)


def make_by_description(faiss, metric):
    results = []
    for text in ("Flat", "IDMap,Flat", "IDMap2,Flat", "Flat,IDMap", "Flat,IDMap2"):
        index = faiss.index_factory(D, text, METRICS[metric])
        index.add(X) if text == "Flat" else index.add_with_ids(X, IDS)
        results.append((type(index).__name__, kept(index), index.search(Q[metric], 3)))
    return results, faiss.index_factory(D, "Flat").metric_type, faiss.IndexFlat(D).metric_type


def go_through_bytes(faiss, metric):
    results = []
    for index in (
        full(faiss, metric),
        mapped(faiss, metric),
        mapped(faiss, metric, "IndexIDMap2"),
        flat(faiss, metric),
    ):
        data = faiss.serialize_index(index)
        twin = faiss.deserialize_index(data)
        unpickled = pickle.loads(pickle.dumps(index))
        results.append((data, type(twin).__name__, kept(twin), twin.search(Q[metric], 3)))
        results.append(unpickled.search(Q[metric], 3))
    return results


def go_through_buffers(faiss, metric):
    index, pieces = full(faiss, metric), []
    for bsz in (123, 2345):
        writer = faiss.BufferedIOWriter(
            faiss.PyCallbackIOWriter(lambda part: pieces.append(bytes(part))), bsz
        )
        faiss.write_index(index, writer)
        del writer  # FAISS writes the rest now
    whole = b"".join(pieces)
    stream = io.BytesIO(whole)
    reader = faiss.BufferedIOReader(faiss.PyCallbackIOReader(stream.read, 50), 700)
    head = np.zeros(12, np.uint8)
    found = [faiss.read_index(reader).search(Q[metric], 3) for _ in range(2)]
    again = faiss.BufferedIOReader(faiss.PyCallbackIOReader(io.BytesIO(whole).read), 5)
    again(faiss.swig_ptr(head), 4, 3)
    return len(whole), found, bytes(head)


def make_data(faiss, metric):
    made = faiss.rand((3, 4), 5), faiss.randn(7), faiss.randint((2, 2), 1, 10), faiss.rand(4, 5)
    assert np.array_equal(made[0], faiss.rand((3, 4), 5))
    assert made[2].max() < 10
    return [(part.shape, part.dtype) for part in made]


OPERATIONS = [
    search_flat,
    search_by_the_named_classes,
    search_more_than_there_is,
    search_an_empty_index,
    search_an_empty_batch,
    search_into_given_arrays,
    search_and_reconstruct,
    search_ranges,
    find_vectors_by_position,
    remove_moves_positions_up,
    remove_everything_and_begin_again,
    merge_flat,
    permute_and_clone,
    filter_by_every_selector,
    map_ids,
    map_ids_and_find_by_id,
    merge_maps,
    make_by_description,
    go_through_bytes,
    go_through_buffers,
    make_data,
]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_an_operation_has_the_results_of_faiss(operation, metric):
    assert_same(operation(ours, metric), operation(theirs, metric))


def test_the_scores_that_are_compared_have_no_ties():
    for metric in METRICS:
        scores = full(theirs, metric).search(Q[metric], 300)[0]
        assert (np.diff(scores) != 0).all()
